import type { WatchedDocument } from '@rocev2/command';
import { appendBounded } from '../bounded-list.js';
import type { AttachedProgram } from '../messages/attached.js';
import { CLUSTER } from './cluster.js';
import { DISK } from './disk.js';
import { ENDPOINT } from './endpoint.js';
import type { DocumentOf, ProgramEvent, ProgramKind, ProgramOf, SampleOf, WatchedKind } from './program-kind.js';
import { SWITCH } from './switch.js';

const SAMPLES_KEPT = 240;
const READINGS_PER_EVENT = 2;
/** Health is evaluated over this many to twice as many readings, so that sporadic events do not make it flicker. */
const READINGS_PER_HEALTH = 5;

const KINDS: { readonly [K in WatchedKind]: ProgramKind<K> } = {
  endpoint: ENDPOINT,
  switch: SWITCH,
  disk: DISK,
  cluster: CLUSTER,
};

interface Reading<D> {
  readonly document: D;
  readonly timeNs: number;
}

export class FollowedProgram<K extends WatchedKind = WatchedKind> {
  readonly id: string;
  readonly #kind: ProgramKind<K>;
  readonly #samples: SampleOf<K>[] = [];
  #readings = 1;
  #last: Reading<DocumentOf<K>>;
  #eventsSince: DocumentOf<K>;
  #healthSince: DocumentOf<K>;
  #healthNext: DocumentOf<K>;
  #program: ProgramOf<K>;

  constructor(id: string, first: Reading<DocumentOf<K>>, others: readonly WatchedDocument[]) {
    this.id = id;
    this.#kind = KINDS[first.document.kind] as unknown as ProgramKind<K>;
    this.#last = first;
    this.#eventsSince = first.document;
    this.#healthSince = first.document;
    this.#healthNext = first.document;
    this.#program = this.#describe(first.document, others);
  }

  get document(): DocumentOf<K> {
    return this.#last.document;
  }

  get program(): AttachedProgram {
    return this.#with(this.#samples);
  }

  get update(): AttachedProgram {
    return this.#with(this.#samples.slice(-1));
  }

  isContinuedBy(document: WatchedDocument): document is DocumentOf<K> {
    const { kind, pid, uptimeSeconds } = this.#last.document;
    return kind === document.kind && pid === document.pid && uptimeSeconds <= document.uptimeSeconds;
  }

  read(reading: Reading<DocumentOf<K>>, others: readonly WatchedDocument[]): ProgramEvent[] {
    const { document: now, timeNs } = reading;
    const seconds = (timeNs - this.#last.timeNs) / 1e9;
    const interval = { now, before: this.#last.document, seconds };
    const number = (this.#samples.at(-1)?.number ?? 0) + 1;
    const sample = { number, timeNs, ...this.#kind.sample(interval) } as unknown as SampleOf<K>;
    appendBounded(this.#samples, sample, SAMPLES_KEPT);
    this.#program = this.#describe(now, others);
    this.#last = reading;
    this.#readings++;
    if (this.#readings % READINGS_PER_HEALTH === 0) {
      this.#healthSince = this.#healthNext;
      this.#healthNext = now;
    }
    if (this.#readings % READINGS_PER_EVENT !== 0) return [];
    const before = this.#eventsSince;
    this.#eventsSince = now;
    return this.#kind.events({ now, before });
  }

  markUnresponsive(): void {
    this.#program = { ...this.#program, health: { isGood: false, text: 'does not answer' } };
  }

  #with(samples: readonly SampleOf<K>[]): AttachedProgram {
    return { ...this.#program, samples } as unknown as AttachedProgram;
  }

  #describe(now: DocumentOf<K>, others: readonly WatchedDocument[]): ProgramOf<K> {
    const { kind, pid, address } = now;
    const health = this.#kind.health({ now, before: this.#healthSince });
    const detail = this.#kind.detail(now, others);
    return { id: this.id, kind, pid, address, health, detail, samples: [] } as unknown as ProgramOf<K>;
  }
}
