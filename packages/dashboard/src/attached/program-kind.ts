import type { WatchedDocument } from '@rocev2/command';
import { withCount } from '../bounded-list.js';
import type { AttachedEvent, AttachedHealth, AttachedProgram } from '../messages/attached.js';
import type { Change, Interval } from './rates.js';

export type Kind = WatchedDocument['kind'];
export type DocumentOf<K extends Kind> = Extract<WatchedDocument, { kind: K }>;
export type ProgramOf<K extends Kind> = Extract<AttachedProgram, { kind: K }>;
export type SampleOf<K extends Kind> = ProgramOf<K>['samples'][number];
type ValuesOf<K extends Kind> = Omit<SampleOf<K>, 'number' | 'timeNs'>;

export type ProgramEvent = Pick<AttachedEvent, 'kind' | 'text'>;

export interface ProgramKind<K extends Kind> {
  sample(interval: Interval<DocumentOf<K>>): ValuesOf<K>;
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
