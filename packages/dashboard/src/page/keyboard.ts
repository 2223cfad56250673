/** Keys of the page, and the list of them behind `?`. */

import { byId, element } from './dom.js';
import { toggleTheme } from './theme.js';

/** A key, and what it does. */
export interface KeyAction {
  /** `KeyboardEvent.key`. */
  readonly key: string;
  /** As the help shows it. */
  readonly name: string;
  /** In a few words, for the help. */
  readonly does: string;
  /** Does it. */
  run(): void;
}

/** Listens for these keys, `t` and `?`, except where a button, a slider or a list that scrolls has the focus and knows them. */
export function startKeyboard(actions: readonly KeyAction[]): void {
  const help = byId<HTMLDialogElement>('help-text');
  const openHelp = () => help.showModal();
  const all: readonly KeyAction[] = [
    ...actions,
    { key: 't', name: 't', does: 'dark or light', run: toggleTheme },
    { key: '?', name: '?', does: 'this list', run: openHelp },
  ];
  byId('keys').append(...all.flatMap(({ name, does }) => [element('dt', {}, name), element('dd', {}, does)]));
  byId('help').addEventListener('click', openHelp);
  byId('help-close').addEventListener('click', () => help.close());
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || help.open) return;
    const target = event.target as HTMLElement;
    const isButton = target.tagName === 'BUTTON' && (event.key === ' ' || event.key === 'Enter');
    const isSlider = target instanceof HTMLInputElement && target.type === 'range' && event.key.startsWith('Arrow');
    const isScrolled = target.matches('.events') && event.key.startsWith('Arrow');
    if (isButton || isSlider || isScrolled) return;
    const action = all.find(({ key }) => key === event.key);
    if (action === undefined) return;
    event.preventDefault();
    action.run();
  });
}
