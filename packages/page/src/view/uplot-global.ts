/** The charts of the dashboard look for uPlot among the globals. */

import UPlot from 'uplot';

(globalThis as unknown as { uPlot: typeof UPlot }).uPlot = UPlot;
