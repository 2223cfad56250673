/** The charting library, which index.html loads as a script of its own. */

import type UPlot from 'uplot';

/** The constructor of charts. */
export const uPlot = (globalThis as unknown as { readonly uPlot: typeof UPlot }).uPlot;
