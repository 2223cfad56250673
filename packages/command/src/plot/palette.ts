/** Colours by what they show, for light and dark surroundings: of pages, of reports and of pictures. */

export const LIGHT = {
  text: '#1c1917',
  muted: '#57534e',
  grid: '#e7e5e4',
  panel: '#ffffff',
  page: '#f5f5f4',
  accent: '#0060a8',
  'on-accent': '#ffffff',
  hue0: '#0060a8',
  hue1: '#c2410c',
  hue2: '#15803d',
  hue3: '#a21caf',
  hue4: '#a16207',
  hue5: '#0e7490',
  hue6: '#4d7c0f',
  hue7: '#6d28d9',
  good: '#166534',
  fair: '#92400e',
  bad: '#be123c',
} as const;

export type Palette = Readonly<Record<keyof typeof LIGHT, string>>;

export const DARK: Palette = {
  text: '#f5f5f4',
  muted: '#a8a29e',
  grid: '#3a3633',
  panel: '#1f1c1a',
  page: '#161412',
  accent: '#60a5fa',
  'on-accent': '#0c0a09',
  hue0: '#60a5fa',
  hue1: '#fb923c',
  hue2: '#4ade80',
  hue3: '#e879f9',
  hue4: '#facc15',
  hue5: '#22d3ee',
  hue6: '#a3e635',
  hue7: '#a78bfa',
  good: '#4ade80',
  fair: '#fbbf24',
  bad: '#fb7185',
};

function declared(palette: Palette, scheme: string): string {
  const properties = Object.entries(palette).map(([name, color]) => `--${name}:${color};`);
  return `{${properties.join('')}color-scheme:${scheme}}`;
}

/** The reader's scheme, unless `data-theme` of the document chooses one. Paper is light. */
export const PALETTE_CSS = [
  `:root${declared(LIGHT, 'light')}`,
  `@media screen and (prefers-color-scheme:dark){:root:not([data-theme="light"])${declared(DARK, 'dark')}}`,
  `@media screen{:root[data-theme="dark"]${declared(DARK, 'dark')}}`,
].join('\n');
