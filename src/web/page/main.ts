/** The page's entry point. */

import type { LabState } from '../lab.js';
import type { RecordingState } from '../recording.js';
import { byId } from './dom.js';
import { startKeyboard } from './keyboard.js';
import { getJson, LiveView } from './live-view.js';
import { RecordingView } from './recording-view.js';
import { startTheme } from './theme.js';

startTheme();
const state = await getJson<LabState | RecordingState>('state');
const view = state.kind === 'lab' ? new LiveView(state) : new RecordingView(state.result);
view.start(byId('view'));
startKeyboard(view.keys);
