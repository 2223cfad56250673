import { byId, element } from './dom.js';
import { toggleTheme } from './theme.js';

export interface KeyAction {
  readonly key: string;
  readonly name: string;
  readonly does: string;
  run(): void;
}

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
