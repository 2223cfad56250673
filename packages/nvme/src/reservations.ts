/**
 * Reservations of one namespace: which hosts have registered a key, and which of them holds it against the others (NVMe base specification 2.0
 * §8.19). A host is its host ID, whichever controllers it has.
 */

import { RESERVATION_TYPE } from './opcodes.js';
import { refuse, STATUS } from './status.js';

/** Registrants of one namespace, at most. */
export const REGISTRANTS_MAX = 256;

/** Why a host is told of a reservation: types of the Reservation Notification log page. */
export const NOTICE = { REGISTRATION_PREEMPTED: 1, RESERVATION_RELEASED: 2, RESERVATION_PREEMPTED: 3 } as const;
/** One of {@link NOTICE}. */
export type ReservationNotice = (typeof NOTICE)[keyof typeof NOTICE];

/** How a command uses the medium, as far as reservations tell commands apart. */
export type MediumAccess = 'read' | 'write';

/** A host that has registered. */
export interface Registrant {
  /** 16 bytes in hex. */
  readonly hostId: string;
  /** Its reservation key, not 0. */
  readonly key: bigint;
  /** It holds the reservation, alone or with all other registrants. */
  readonly isHolder: boolean;
}

/** What outlives a power loss, if hosts have asked for it. */
export interface ReservationState {
  /** Host IDs in hex, with their keys. */
  readonly registrants: ReadonlyArray<readonly [hostId: string, key: bigint]>;
  /** Type of the reservation; 0: none. */
  readonly type: number;
  /** The host that holds it; undefined: none, or all registrants. */
  readonly holder: string | undefined;
}

/** Where a namespace's reservations are kept when the target ends. */
export interface ReservationStore {
  /** As it was kept last; undefined: nothing was. */
  readonly initial: ReservationState | undefined;
  /** Keeps the state, durably when it resolves; undefined: nothing is to be kept. */
  save(state: ReservationState | undefined): Promise<void>;
}

/** What a Reservation Register command says. */
export interface RegisterRequest {
  /** The key is not checked. */
  readonly ignoresKey: boolean;
  /** The key of the host now. */
  readonly currentKey: bigint;
  /** The key that it registers. */
  readonly newKey: bigint;
}

/** What a Reservation Acquire command says. */
export interface PreemptRequest {
  /** The key of the host. */
  readonly key: bigint;
  /** The key of those that lose their registration. */
  readonly preempted: bigint;
  /** The type of reservation that the host gets if it preempts one. */
  readonly type: number;
}

const { WRITE_EXCLUSIVE, EXCLUSIVE_ACCESS, WRITE_EXCLUSIVE_REGISTRANTS, WRITE_EXCLUSIVE_ALL, EXCLUSIVE_ACCESS_ALL } =
  RESERVATION_TYPE;
const WRITE_ONLY: ReadonlySet<number> = new Set([WRITE_EXCLUSIVE, WRITE_EXCLUSIVE_REGISTRANTS, WRITE_EXCLUSIVE_ALL]);

/** Registrants and reservation of one namespace. Methods throw the status to answer with. */
export class Reservations {
  /** Called for each host that is to be told of something another host did. */
  onNotice: (hostId: string, notice: ReservationNotice) => void = () => {};
  readonly #store: ReservationStore | undefined;
  readonly #keys = new Map<string, bigint>();
  #type = 0;
  #holder: string | undefined;
  #generation = 0;
  #persists = false;

  /** Without a store nothing outlives the target, and hosts cannot ask for it. */
  constructor(store?: ReservationStore) {
    this.#store = store;
    const { initial } = store ?? {};
    if (initial === undefined) return;
    for (const [hostId, key] of initial.registrants) this.#keys.set(hostId, key);
    this.#type = initial.type;
    this.#holder = initial.holder;
    this.#persists = true;
  }

  /** Hosts may ask that registrations and reservation outlive a power loss. */
  get canPersist(): boolean {
    return this.#store !== undefined;
  }

  /** Hosts have asked for that (PTPL). */
  get persists(): boolean {
    return this.#persists;
  }

  /** Changes with the registrants; 32 bits. */
  get generation(): number {
    return this.#generation;
  }

  /** Type of the reservation; 0: none. */
  get type(): number {
    return this.#type;
  }

  /** In the order in which they registered. */
  get registrants(): Registrant[] {
    return [...this.#keys].map(([hostId, key]) => ({ hostId, key, isHolder: this.#isHolder(hostId) }));
  }

  /** Throws the status of a reservation conflict if the host may not use the medium so. */
  check(hostId: string, access: MediumAccess): void {
    if (this.#type === 0 || this.#isHolder(hostId)) return;
    if (access === 'read' && WRITE_ONLY.has(this.#type)) return;
    const isForHolderAlone = this.#type === WRITE_EXCLUSIVE || this.#type === EXCLUSIVE_ACCESS;
    if (isForHolderAlone || !this.#keys.has(hostId)) throw conflict();
  }

  /** Registers a host's first key. The key that it has already is no error. */
  register(hostId: string, { newKey }: RegisterRequest): void {
    const key = this.#keys.get(hostId);
    if (key !== undefined && key !== newKey) throw conflict();
    if (newKey === 0n) throw refuse(STATUS.INVALID_FIELD);
    if (key === undefined && this.#keys.size >= REGISTRANTS_MAX) throw refuse(STATUS.INTERNAL_ERROR);
    this.#keys.set(hostId, newKey);
    this.#countUp();
  }

  /** Gives a registrant another key. */
  replace(hostId: string, request: RegisterRequest): void {
    this.#expectRegistrant(hostId, request);
    if (request.newKey === 0n) throw refuse(STATUS.INVALID_FIELD);
    this.#keys.set(hostId, request.newKey);
    this.#countUp();
  }

  /** Ends a registration, and the reservation that hangs on it. */
  unregister(hostId: string, request: RegisterRequest): void {
    this.#expectRegistrant(hostId, request);
    this.#keys.delete(hostId);
    this.#countUp();
    const wasLast = this.#isForAll && this.#keys.size === 0;
    if (this.#holder === hostId || wasLast) this.#endReservation(hostId);
  }

  /** Takes the reservation, if nobody else has it. */
  acquire(hostId: string, key: bigint, type: number): void {
    this.#expectKey(hostId, key);
    if (this.#type === 0) this.#reserve(hostId, type);
    else if (!this.#isHolder(hostId) || this.#type !== type) throw conflict();
  }

  /** Ends the registrations with a key, and takes the reservation if one of them held it. Gives the hosts that lost theirs. */
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

  /** Gives the reservation up. Who does not hold it gives up nothing. */
  release(hostId: string, key: bigint, type: number): void {
    this.#expectKey(hostId, key);
    if (this.#type === 0 || !this.#isHolder(hostId)) return;
    if (this.#type !== type) throw refuse(STATUS.INVALID_FIELD);
    this.#endReservation(hostId);
  }

  /** Ends the reservation and all registrations. */
  clear(hostId: string, key: bigint): void {
    this.#expectKey(hostId, key);
    this.#tellRegistrants(hostId, NOTICE.RESERVATION_PREEMPTED);
    this.#keys.clear();
    this.#type = 0;
    this.#holder = undefined;
    this.#countUp();
  }

  /** Whether all this is to outlive a power loss. Throws the status where there is no place for it. */
  setPersists(persists: boolean): void {
    if (persists && !this.canPersist) throw refuse(STATUS.INVALID_FIELD);
    this.#persists = persists;
  }

  /** Resolves when what the commands have changed is kept, if it is to be kept. */
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

  /** Registrants of the types that give them rights hear that these have ended. */
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
