/** The first Ctrl-C, SIGTERM or SIGHUP ends every command, in every phase; and what ends without it. */

import { endsBySignal, endsWithoutCtrlC, namesAllServers } from '../e2e/ctrl-c-cases.js';

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) endsBySignal(signal, () => true);
namesAllServers();
endsWithoutCtrlC();
