/** What the page of this repository uses of the dashboard, besides the parts. It changes without notice. */

export { laddersOf } from './ladder/ladder.js';
export { CapturePackets } from './ladder/read-capture.js';
export type { LadderConnection } from './messages/ladder-messages.js';
export { filled, LADDER_TEXTS, type LadderTexts } from './messages/ladder-texts.js';
