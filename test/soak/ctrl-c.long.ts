/** The first Ctrl-C ends every command, in every phase; and what ends without it. */

import { endsByCtrlC, endsWithoutCtrlC } from '../e2e/ctrl-c-cases.js';

endsByCtrlC(() => true);
endsWithoutCtrlC();
