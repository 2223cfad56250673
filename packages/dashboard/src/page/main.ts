import type { AttachedState } from '../messages/attached.js';
import type { LabState } from '../messages/lab-messages.js';
import type { CaptureState } from '../messages/ladder-messages.js';
import type { RecordingState } from '../messages/recording-messages.js';
import { AttachedView } from './attached-view.js';
import { CaptureView } from './capture-view.js';
import { byId } from './dom.js';
import { type KeyAction, startKeyboard } from './keyboard.js';
import { LiveView } from './live-view.js';
import { RecordingView } from './recording-view.js';
import { getJson } from './server-link.js';
import { startTheme } from './theme.js';

type State = LabState | RecordingState | AttachedState | CaptureState;

interface View {
  readonly keys: readonly KeyAction[];
  start(view: HTMLElement): void;
}

function viewOf(state: State): View {
  switch (state.kind) {
    case 'lab':
      return new LiveView(state);
    case 'recording':
      return new RecordingView(state.result);
    case 'capture':
      return new CaptureView(state);
    case 'attached':
      return new AttachedView(state);
  }
}

startTheme();
const view = viewOf(await getJson<State>('state'));
view.start(byId('view'));
startKeyboard(view.keys);
