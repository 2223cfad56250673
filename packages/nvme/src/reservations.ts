/**
 * Reservations of one namespace (NVMe base specification 2.0 §8.19). A host is identified by its host ID, not its
 * controllers.
 */

import { RESERVATION_TYPE } from './opcodes.js';
import { refuse, STATUS } from './status.js';

export const REGISTRANTS_MAX = 256;

export const NOTICE = { REGISTRATION_PREEMPTED: 1, RESERVATION_RELEASED: 2, RESERVATION_PREEMPTED: 3 } as const;
export type ReservationNotice = (typeof NOTICE)[keyof typeof NOTICE];

export type MediumAccess = 'read' | 'write';

export interface Registrant {
  readonly hostId: string;
  readonly key: bigint;
  readonly isHolder: boolean;
}

export interface ReservationState {
  readonly registrants: ReadonlyArray<readonly [hostId: string, key: bigint]>;
  readonly type: number;
  readonly holder: string | undefined;
}

export interface ReservationStore {
  readonly initial: ReservationState | undefined;
  save(state: ReservationState | undefined): Promise<void>;
}

export interface RegisterRequest {
  readonly ignoresKey: boolean;
  readonly currentKey: bigint;
  readonly newKey: bigint;
}

export interface PreemptRequest {
  readonly key: bigint;
  readonly preempted: bigint;
  readonly type: number;
}

const { WRITE_EXCLUSIVE, EXCLUSIVE_ACCESS, WRITE_EXCLUSIVE_REGISTRANTS, WRITE_EXCLUSIVE_ALL, EXCLUSIVE_ACCESS_ALL } =
  RESERVATION_TYPE;
const WRITE_ONLY: ReadonlySet<number> = new Set([WRITE_EXCLUSIVE, WRITE_EXCLUSIVE_REGISTRANTS, WRITE_EXCLUSIVE_ALL]);

/** Methods throw the status to answer with. */
export class Reservations {
  onNotice: (hostId: string, notice: ReservationNotice) => void = () => {};
  readonly #store: ReservationStore | undefined;
  readonly #keys = new Map<string, bigint>();
  #type = 0;
  #holder: string | undefined;
  #generation = 0;
  #persists = false;

  constructor(store?: ReservationStore) {
    this.#store = store;
    const { initial } = store ?? {};
    if (initial === undefined) return;
    for (const [hostId, key] of initial.registrants) this.#keys.set(hostId, key);
    this.#type = initial.type;
    this.#holder = initial.holder;
    this.#persists = true;
  }

  get canPersist(): boolean {
    return this.#store !== undefined;
  }

  get persists(): boolean {
    return this.#persists;
  }

  get generation(): number {
    return this.#generation;
  }

  get type(): number {
    return this.#type;
  }

  get registrants(): Registrant[] {
    return [...this.#keys].map(([hostId, key]) => ({ hostId, key, isHolder: this.#isHolder(hostId) }));
  }

  check(hostId: string, access: MediumAccess): void {
    if (this.#type === 0 || this.#isHolder(hostId)) return;
    if (access === 'read' && WRITE_ONLY.has(this.#type)) return;
    const isForHolderAlone = this.#type === WRITE_EXCLUSIVE || this.#type === EXCLUSIVE_ACCESS;
    if (isForHolderAlone || !this.#keys.has(hostId)) throw conflict();
  }

  /** The key that it has already is no error. */
  register(hostId: string, { newKey }: RegisterRequest): void {
    const key = this.#keys.get(hostId);
    if (key !== undefined && key !== newKey) throw conflict();
    if (newKey === 0n) throw refuse(STATUS.INVALID_FIELD);
    if (key === undefined && this.#keys.size >= REGISTRANTS_MAX) throw refuse(STATUS.INTERNAL_ERROR);
    this.#keys.set(hostId, newKey);
    this.#countUp();
  }

  replace(hostId: string, request: RegisterRequest): void {
    this.#expectRegistrant(hostId, request);
    if (request.newKey === 0n) throw refuse(STATUS.INVALID_FIELD);
    this.#keys.set(hostId, request.newKey);
    this.#countUp();
  }

  unregister(hostId: string, request: RegisterRequest): void {
    this.#expectRegistrant(hostId, request);
    this.#keys.delete(hostId);
    this.#countUp();
    const wasLast = this.#isForAll && this.#keys.size === 0;
    if (this.#holder === hostId || wasLast) this.#endReservation(hostId);
  }

  acquire(hostId: string, key: bigint, type: number): void {
    this.#expectKey(hostId, key);
    if (this.#type === 0) this.#reserve(hostId, type);
    else if (!this.#isHolder(hostId) || this.#type !== type) throw conflict();
  }

  preempt(hostId: string, { key, preempted, type }: PreemptRequest): string[] {
    this.#expectKey(hostId, key);
    const takesAll = this.#isForAll && preempted === 0n;
    const takesReservation = takesAll || (this.#holder !== undefined && this.#keys.get(this.#holder) === preempted);
    if (!takesAll && preempted === 0n) throw refuse(STATUS.INVALID_FIELD);
    const others = [...this.#keys].filter(([id]) => id !== hostId);
    const losers = others.filter(([, other]) => takesAll || other === preempted).map(([id]) => id);
    if (losers.length === 0 && !takesReservation) throw conflict();
    for (const id of losers) {
      this.#keys.delete(id);
      this.onNotice(id, NOTICE.REGISTRATION_PREEMPTED);
    }
    this.#countUp();
    if (takesReservation) {
      if (this.#type !== type) this.#tellRegistrants(hostId, NOTICE.RESERVATION_RELEASED);
      this.#reserve(hostId, type);
    }
    return losers;
  }

  /** Who does not hold it gives up nothing. */
  release(hostId: string, key: bigint, type: number): void {
    this.#expectKey(hostId, key);
    if (this.#type === 0 || !this.#isHolder(hostId)) return;
    if (this.#type !== type) throw refuse(STATUS.INVALID_FIELD);
    this.#endReservation(hostId);
  }

  clear(hostId: string, key: bigint): void {
    this.#expectKey(hostId, key);
    this.#tellRegistrants(hostId, NOTICE.RESERVATION_PREEMPTED);
    this.#keys.clear();
    this.#type = 0;
    this.#holder = undefined;
    this.#countUp();
  }

  setPersists(persists: boolean): void {
    if (persists && !this.canPersist) throw refuse(STATUS.INVALID_FIELD);
    this.#persists = persists;
  }

  async save(): Promise<void> {
    const state = { registrants: [...this.#keys], type: this.#type, holder: this.#holder };
    await this.#store?.save(this.#persists ? state : undefined);
  }

  get #isForAll(): boolean {
    return this.#type === WRITE_EXCLUSIVE_ALL || this.#type === EXCLUSIVE_ACCESS_ALL;
  }

  #isHolder(hostId: string): boolean {
    return this.#isForAll ? this.#keys.has(hostId) : this.#holder === hostId;
  }

  #reserve(hostId: string, type: number): void {
    this.#type = type;
    this.#holder = this.#isForAll ? undefined : hostId;
  }

  #endReservation(by: string): void {
    const gaveRights = this.#type >= WRITE_EXCLUSIVE_REGISTRANTS;
    this.#type = 0;
    this.#holder = undefined;
    if (gaveRights) this.#tellRegistrants(by, NOTICE.RESERVATION_RELEASED);
  }

  #tellRegistrants(by: string, notice: ReservationNotice): void {
    for (const id of this.#keys.keys()) if (id !== by) this.onNotice(id, notice);
  }

  #expectKey(hostId: string, key: bigint): void {
    if (this.#keys.get(hostId) !== key) throw conflict();
  }

  #expectRegistrant(hostId: string, { ignoresKey, currentKey }: RegisterRequest): void {
    const key = this.#keys.get(hostId);
    if (key === undefined || (!ignoresKey && key !== currentKey)) throw conflict();
  }

  #countUp(): void {
    this.#generation = (this.#generation + 1) >>> 0;
  }
}

function conflict(): Error {
  return refuse(STATUS.RESERVATION_CONFLICT);
}
