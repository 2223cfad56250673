import { PARTS_CSS } from '@rocev2/command/plot';
import { byId } from './dom.js';

const STORED = 'rocev2-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

function isDark(): boolean {
  const chosen = document.documentElement.dataset['theme'];
  return chosen === undefined ? system.matches : chosen === 'dark';
}

function changed(): void {
  byId('theme').textContent = isDark() ? 'Light' : 'Dark';
}

export function toggleTheme(): void {
  const theme = isDark() ? 'light' : 'dark';
  document.documentElement.dataset['theme'] = theme;
  localStorage.setItem(STORED, theme);
  changed();
}

/** Palette and style of the parts, before the first of them is shown. */
export function addStyle(): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(PARTS_CSS);
  document.adoptedStyleSheets = [sheet];
}

export function startTheme(): void {
  addStyle();
  const stored = localStorage.getItem(STORED);
  if (stored !== null) document.documentElement.dataset['theme'] = stored;
  byId('theme').addEventListener('click', toggleTheme);
  system.addEventListener('change', changed);
  changed();
}
