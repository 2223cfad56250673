/**
 * What the dashboard remembers of the programs it follows. A program is identified by its place (a control socket or a
 * URL); a restarted one is another program, never compared with the old one.
 */

import type { WatchedDocument } from '@rocev2/command';
import { appendBounded } from '../bounded-list.js';
import type { AttachedEvent, AttachedMessages, AttachedState } from '../messages/attached.js';
import { FollowedProgram } from './followed-program.js';

const EVENTS_KEPT = 100;

export type AttachedMessage = {
  readonly [N in keyof AttachedMessages]: { readonly name: N; readonly data: AttachedMessages[N] };
}[keyof AttachedMessages];

export class AttachedHistory {
  readonly #which: readonly string[];
  readonly #followed = new Map<string, FollowedProgram>();
  readonly #events: AttachedEvent[] = [];
  #eventNumber = 0;
  #programNumber = 0;

  constructor(which: readonly string[]) {
    this.#which = which;
  }

  get state(): AttachedState {
    const programs = [...this.#followed.values()].map(({ program }) => program);
    return { kind: 'attached', which: this.#which, programs, events: this.#events };
  }

  get addresses(): readonly string[] {
    return [...this.#followed.keys()];
  }

  read(place: string, document: WatchedDocument, timeNs: number): AttachedMessage[] {
    const others = [...this.#followed.values()].map((other) => other.document);
    const known = this.#followed.get(place);
    if (known?.isContinuedBy(document) === true) {
      const events = known.read({ document, timeNs }, others);
      return [
        { name: 'program', data: known.update },
        ...events.map(({ kind, text }) => this.#note(known.id, kind, `${nameOf(document)}: ${text}`, timeNs)),
      ];
    }
    const ended = this.gone(place, timeNs);
    const program = new FollowedProgram(String(++this.#programNumber), { document, timeNs }, others);
    this.#followed.set(place, program);
    return [
      ...ended,
      { name: 'program', data: program.update },
      this.#note(program.id, 'appeared', `${nameOf(document)} is there`, timeNs),
    ];
  }

  gone(place: string, timeNs: number): AttachedMessage[] {
    const known = this.#followed.get(place);
    if (known === undefined) return [];
    this.#followed.delete(place);
    return [
      { name: 'gone', data: { id: known.id } },
      this.#note(known.id, 'ended', `${nameOf(known.document)} ended`, timeNs),
    ];
  }

  silent(place: string): AttachedMessage[] {
    const known = this.#followed.get(place);
    if (known === undefined) return [];
    known.markUnresponsive();
    return [{ name: 'program', data: known.update }];
  }

  note(text: string, timeNs: number): AttachedMessage {
    return this.#note('', 'notice', text, timeNs);
  }

  #note(id: string, kind: AttachedEvent['kind'], text: string, timeNs: number): AttachedMessage {
    const event = { number: ++this.#eventNumber, timeNs, kind, id, text };
    appendBounded(this.#events, event, EVENTS_KEPT);
    return { name: 'event', data: event };
  }
}

function nameOf({ kind, pid, address }: WatchedDocument): string {
  return `${kind} ${pid} on ${address}`;
}
