/** What the dashboard has to know of a kind of program; one file each has it. Pure: documents in, samples and words out. */

import type { WatchedDocument } from '@rocev2/command';
import { withCount } from '../bounded-list.js';
import type { AttachedEvent, AttachedHealth, AttachedProgram } from '../messages/attached.js';
import type { Change, Interval } from './rates.js';

/** `endpoint`, `switch`, `disk` or `cluster`. */
export type Kind = WatchedDocument['kind'];
/** What programs of a kind answer. */
export type DocumentOf<K extends Kind> = Extract<WatchedDocument, { kind: K }>;
/** What the page is told of programs of a kind. */
export type ProgramOf<K extends Kind> = Extract<AttachedProgram, { kind: K }>;
/** One sample of such a program. */
export type SampleOf<K extends Kind> = ProgramOf<K>['samples'][number];
/** What a sample has beside its number and time. */
type ValuesOf<K extends Kind> = Omit<SampleOf<K>, 'number' | 'timeNs'>;

/** Something that happened between two readings. */
export type ProgramEvent = Pick<AttachedEvent, 'kind' | 'text'>;

/** How documents of a kind become samples, details, health and events. */
export interface ProgramKind<K extends Kind> {
  /** Rates and totals between two readings. */
  sample(interval: Interval<DocumentOf<K>>): ValuesOf<K>;
  /** `others`: what all programs said last, for the other ends of connections. */
  detail(now: DocumentOf<K>, others: readonly WatchedDocument[]): ProgramOf<K>['detail'];
  /** How it does, by what has changed in the last seconds. */
  health(change: Change<DocumentOf<K>>): AttachedHealth;
  /** What happened between two readings. */
  events(change: Change<DocumentOf<K>>): ProgramEvent[];
}

const GOOD: AttachedHealth = { isGood: true, text: 'good' };

/** The first of these that is so; all are troubles. */
export function firstTrouble(troubles: ReadonlyArray<string | false>): AttachedHealth {
  const text = troubles.find((trouble) => typeof trouble === 'string');
  return text === undefined ? GOOD : { isGood: false, text };
}

/** `text` as an event if the counter moved, with how often. */
export function counted(kind: ProgramEvent['kind'], text: string, times: number): ProgramEvent[] {
  return times <= 0 ? [] : [{ kind, text: withCount(text, times) }];
}
