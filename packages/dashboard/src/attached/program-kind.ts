import type { WatchedDocument } from '@rocev2/command';
import { withCount } from '../bounded-list.js';
import type { AttachedEvent, AttachedHealth, AttachedProgram } from '../messages/attached.js';
import type { Change, TimedChange } from './rates.js';

export type WatchedKind = WatchedDocument['kind'];
export type DocumentOf<K extends WatchedKind> = Extract<WatchedDocument, { kind: K }>;
export type ProgramOf<K extends WatchedKind> = Extract<AttachedProgram, { kind: K }>;
export type SampleOf<K extends WatchedKind> = ProgramOf<K>['samples'][number];
type ValuesOf<K extends WatchedKind> = Omit<SampleOf<K>, 'number' | 'timeNs'>;

export type ProgramEvent = Pick<AttachedEvent, 'kind' | 'text'>;

export interface ProgramKind<K extends WatchedKind> {
  sample(interval: TimedChange<DocumentOf<K>>): ValuesOf<K>;
  detail(now: DocumentOf<K>, others: readonly WatchedDocument[]): ProgramOf<K>['detail'];
  health(change: Change<DocumentOf<K>>): AttachedHealth;
  events(change: Change<DocumentOf<K>>): ProgramEvent[];
}

const GOOD: AttachedHealth = { isGood: true, text: 'good' };

export function firstTrouble(troubles: ReadonlyArray<string | false>): AttachedHealth {
  const text = troubles.find((trouble) => typeof trouble === 'string');
  return text === undefined ? GOOD : { isGood: false, text };
}

export function counted(kind: ProgramEvent['kind'], text: string, times: number): ProgramEvent[] {
  return times <= 0 ? [] : [{ kind, text: withCount(text, times) }];
}
