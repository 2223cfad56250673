/**
 * What the dashboard remembers of the programs it follows, who came and went, and what happened. Pure: readings and their times are passed in;
 * what the page has to be told is returned.
 *
 * A program is followed at a place (a control socket or a URL). Another process there, or one that was started anew, is another program: nothing
 * of the old one is compared with it.
 */

import type { WatchedDocument } from '@rocev2/command';
import { appendBounded } from '../bounded-list.js';
import type { AttachedEvent, AttachedMessages, AttachedState } from '../messages/attached.js';
import { FollowedProgram } from './followed-program.js';

const EVENTS_KEPT = 100;

/** What to tell the page. */
export type Message = {
  readonly [N in keyof AttachedMessages]: { readonly name: N; readonly data: AttachedMessages[N] };
}[keyof AttachedMessages];

/** All programs that are followed. */
export class AttachedHistory {
  readonly #which: readonly string[];
  /** By place. */
  readonly #followed = new Map<string, FollowedProgram>();
  readonly #events: AttachedEvent[] = [];
  #eventNumber = 0;
  #programNumber = 0;

  constructor(which: readonly string[]) {
    this.#which = which;
  }

  /** What a page needs to begin. */
  get state(): AttachedState {
    const programs = [...this.#followed.values()].map(({ program }) => program);
    return { kind: 'attached', which: this.#which, programs, events: this.#events };
  }

  /** Places where a program is followed. */
  get places(): readonly string[] {
    return [...this.#followed.keys()];
  }

  /** The program at `place` said this at that time. */
  read(place: string, document: WatchedDocument, timeNs: number): Message[] {
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

  /** Nobody is at `place` any more. */
  gone(place: string, timeNs: number): Message[] {
    const known = this.#followed.get(place);
    if (known === undefined) return [];
    this.#followed.delete(place);
    return [
      { name: 'gone', data: { id: known.id } },
      this.#note(known.id, 'ended', `${nameOf(known.document)} ended`, timeNs),
    ];
  }

  /** The program at `place` is there, and does not answer in time. */
  silent(place: string): Message[] {
    const known = this.#followed.get(place);
    if (known === undefined) return [];
    known.markUnresponsive();
    return [{ name: 'program', data: known.update }];
  }

  /** Something to be told that none of the programs has done. */
  note(text: string, timeNs: number): Message {
    return this.#note('', 'notice', text, timeNs);
  }

  #note(id: string, kind: AttachedEvent['kind'], text: string, timeNs: number): Message {
    const event = { number: ++this.#eventNumber, timeNs, kind, id, text };
    appendBounded(this.#events, event, EVENTS_KEPT);
    return { name: 'event', data: event };
  }
}

function nameOf({ kind, pid, address }: WatchedDocument): string {
  return `${kind} ${pid} on ${address}`;
}
