import { formatClock } from '@rocev2/command/plot';
import { element } from './dom.js';

const EVENTS_SHOWN = 100;

interface ListedEvent {
  readonly timeNs: number;
  readonly kind: string;
  readonly text: string;
}

export class EventList {
  readonly element = element('ol', { class: 'events', tabindex: 0, 'aria-label': 'events, the newest first' });

  add({ timeNs, kind, text }: ListedEvent): void {
    this.element.prepend(element('li', { class: kind }, element('time', {}, formatClock(timeNs)), text));
    while (this.element.children.length > EVENTS_SHOWN) this.element.lastElementChild!.remove();
  }
}
