import type UPlot from 'uplot';

export const uPlot = (globalThis as unknown as { readonly uPlot: typeof UPlot }).uPlot;
