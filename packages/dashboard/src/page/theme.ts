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

export function toggleTheme(): void {
  const theme = isDark() ? 'light' : 'dark';
  document.documentElement.dataset['theme'] = theme;
  localStorage.setItem(STORED, theme);
  changed();
}

export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function themeColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

export function startTheme(): void {
  const stored = localStorage.getItem(STORED);
  if (stored !== null) document.documentElement.dataset['theme'] = stored;
  byId('theme').addEventListener('click', toggleTheme);
  system.addEventListener('change', changed);
  changed();
}
