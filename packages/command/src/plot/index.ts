/** `@rocev2/command/plot`: what pages, reports and pictures are drawn with, as markup. It needs nothing of Node.js. */

export {
  drawGrid,
  drawLine,
  exactScale,
  extent,
  linearScale,
  type PlotBox,
  pixel,
  pixelsIn,
  type Scale,
} from './axes.js';
export { type BarRow, barRows, colorLegend } from './bars.js';
export { COLORS, QUEUE_PAIR_COLORS } from './colors.js';
export {
  formatByteRate,
  formatBytes,
  formatClock,
  formatCount,
  formatCounted,
  formatNs,
  formatPerSecond,
  formatRate,
  formatShare,
} from './format.js';
export { htmlPage, htmlTable } from './html-page.js';
export { drawLadder, ladderFigure, packetLegend, packetWords } from './ladder.js';
export type { LadderConnection, LadderPacket } from './ladder-packet.js';
export { filled, LADDER_TEXTS, type LadderTexts } from './ladder-texts.js';
export { type ChartPanel, type ChartSeries, type LineChart, renderLineChart } from './line-chart.js';
export { logTicks } from './log-ticks.js';
export { PARTS_CSS } from './parts-style.js';
export { escapeXml, tag } from './svg.js';
export { type Tone, TRANSFER_TITLES, toneOfShare, type VerdictText, verdictMarkup } from './verdict.js';
