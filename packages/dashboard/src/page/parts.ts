/**
 * `@rocev2/dashboard/parts`: the parts of pages that show packets and rates. Only sources of this repository import it.
 * They need a browser, and `style.css` of this folder.
 */

export { element } from './dom.js';
export { LadderView } from './ladder-view.js';
export { type Flight, PacketStage } from './packet-stage.js';
export { Table } from './table.js';
export { addStyle } from './theme.js';
export { TimeChart } from './time-chart.js';
export { VerdictView } from './verdict-view.js';
