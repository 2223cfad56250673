/** Dark or light: the reader's system says, until the toggle does; then it is remembered. */

import { byId } from './dom.js';

const STORED = 'rocev2-theme';
const listeners = new Set<() => void>();
const system = matchMedia('(prefers-color-scheme: dark)');

function isDark(): boolean {
  const chosen = document.documentElement.dataset['theme'];
  return chosen === undefined ? system.matches : chosen === 'dark';
}

function changed(): void {
  byId('theme').textContent = isDark() ? 'Light' : 'Dark';
  for (const listener of listeners) listener();
}

/** Changes to the other theme, and remembers it in this browser. */
export function toggleTheme(): void {
  const theme = isDark() ? 'light' : 'dark';
  document.documentElement.dataset['theme'] = theme;
  localStorage.setItem(STORED, theme);
  changed();
}

/** For what is drawn in colours that a style sheet cannot reach. Returns how to stop that. */
export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The value of a colour of style.css: `--hue0`. */
export function themeColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

/** Takes up what was remembered, and puts the toggle to work. */
export function startTheme(): void {
  const stored = localStorage.getItem(STORED);
  if (stored !== null) document.documentElement.dataset['theme'] = stored;
  byId('theme').addEventListener('click', toggleTheme);
  system.addEventListener('change', changed);
  changed();
}
