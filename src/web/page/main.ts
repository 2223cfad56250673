/** The page's entry point. */

import type { LabState } from '../lab.js';
import { byId } from './dom.js';
import { startKeyboard } from './keyboard.js';
import { getJson, LiveView } from './live-view.js';
import { startTheme } from './theme.js';

startTheme();
const view = new LiveView(await getJson<LabState>('state'));
view.start(byId('view'));
startKeyboard(view.keys);
