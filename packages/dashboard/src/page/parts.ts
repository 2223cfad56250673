/**
 * `@rocev2/dashboard/parts`: the parts of pages that show packets and rates. Only sources of this repository import it. They need a browser, a global `uPlot`, and
 * `style.css` of this folder.
 */

export type { LadderPacket } from '../messages/ladder-messages.js';
export type { LadderTexts } from '../messages/ladder-texts.js';
export { QUEUE_PAIR_COLORS } from './colors.js';
export { element } from './dom.js';
export { formatNs, formatRate } from './format.js';
export { LadderView } from './ladder-view.js';
export { Table } from './table.js';
export { TimeChart } from './time-chart.js';
export { toneOfShare } from './verdict.js';
export { VerdictView } from './verdict-view.js';
