/**
 * A stage between engine and wire that seals packets as they leave, each with a new IV, and opens received ones, or
 * drops and counts them. Sealing moves packets into a batch of the inner port, so there is no extra copy.
 */

import { copyBytes } from '../../core/bytes.js';
import { COUNTER, COUNTER_NAMES } from '../../memory/ring/counters.js';
import type { AssociationCounts, AssociationTerms, Protection, ProtectionMode } from '../../memory/ring/protection.js';
import { IpAddress } from '../../packet/address.js';
import { IP_ID_PROTECTED } from '../../packet/icrc.js';
import {
  isEmptyPsp,
  isPsp,
  isPspOfRoce,
  PSP_CLEAR_BYTES,
  PSP_EMPTY_BYTES,
  PSP_HEADER_BYTES,
  PSP_OVERHEAD_BYTES,
  PSP_PREFIX_BYTES,
  pspSpi,
  pspVersion,
  writeEmptyPsp,
  writeInnerUdp,
  writePsp,
} from '../../packet/psp.js';
import { BTH_BYTES } from '../../packet/roce.js';
import { appendSlot, copySlotFields } from '../append-slot.js';
import { PAYLOAD_ALIGNMENT, type Port, type RxDatagram, TX_SLOT_BYTES, TxBatch } from '../datagram.js';
import { PortWrapper } from '../port-wrapper.js';
import { Association, OPENED, REPLAYED, type RekeyLimits } from './association.js';
import { AssociationTable } from './association-table.js';
import type { CipherMaker } from './packet-cipher.js';

export interface SecurePortOptions {
  readonly mode: ProtectionMode;
  readonly nowNs: () => number;
  readonly makeCipher: CipherMaker;
  readonly cipherName?: string;
  readonly pathMtuMax?: number;
  readonly rekey?: RekeyLimits;
}

const PLAIN_BATCHES_MAX = 8;

export class SecurePort extends PortWrapper implements Protection {
  readonly mode: ProtectionMode;
  readonly #options: SecurePortOptions;
  readonly #table = new AssociationTable();
  readonly #plain: TxBatch[] = [];
  readonly #outOf = new Map<TxBatch, TxBatch>();
  readonly #inTrains: boolean;
  /** The packet that was opened last; aligned so that copies to shared memory are fast. */
  readonly #opened = new Uint8Array(new ArrayBuffer(TX_SLOT_BYTES));
  readonly #rx: RxDatagram;
  #counters: Float64Array = new Float64Array(COUNTER_NAMES.length);

  constructor(inner: Port, options: SecurePortOptions) {
    super(inner);
    this.mode = options.mode;
    this.#options = options;
    this.#inTrains = inner.ipIdPolicy === 'train' && inner.address.family === 4;
    this.#rx = {
      bytes: this.#opened,
      offset: PAYLOAD_ALIGNMENT,
      length: 0,
      source: inner.address,
      sourcePort: 0,
      destination: inner.address,
      destinationPort: 0,
      ecn: 0,
      dscp: 0,
      ipId: IP_ID_PROTECTED,
    };
  }

  override get description(): string {
    const { cipherName } = this.#options;
    const by = cipherName === undefined ? '' : ` by AES-GCM of ${cipherName}`;
    return `${this.inner.description}, packets protected (${this.mode})${by}`;
  }

  override get pathMtuMax(): number {
    return this.#options.pathMtuMax ?? this.inner.pathMtuMax;
  }

  countInto(counters: Float64Array): void {
    this.#counters = counters;
  }

  get associations(): Iterable<Association> {
    return this.#table.all;
  }

  async associate(terms: AssociationTerms): Promise<void> {
    const { makeCipher, nowNs, rekey } = this.#options;
    this.#table.add(new Association(terms, IpAddress.parse(terms.peer), makeCipher, nowNs(), rekey));
  }

  begin(spi: number): void {
    const association = this.#table.bySpi(spi);
    if (association !== undefined) association.isStarted = true;
  }

  retire(spi: number): void {
    const association = this.#table.bySpi(spi);
    if (association !== undefined) association.isRetired = true;
  }

  async counts(spi: number): Promise<AssociationCounts | undefined> {
    const association = this.#table.bySpi(spi);
    return association === undefined ? undefined : { ...association.counters };
  }

  dissolve(spi: number): void {
    this.#table.remove(spi)?.close();
  }

  override beginBatch(): TxBatch | undefined {
    const out = this.inner.beginBatch();
    if (out === undefined) return undefined;
    const plain = this.#plain.pop() ?? new TxBatch(out.capacity, this.address, out.trainMax);
    plain.count = 0;
    plain.capacity = out.capacity;
    this.#outOf.set(plain, out);
    return plain;
  }

  override sendBatch(plain: TxBatch): void {
    const out = this.#outOf.get(plain);
    if (out === undefined) return;
    this.#outOf.delete(plain);
    const nowNs = this.#options.nowNs();
    for (let slot = 0; slot < plain.count; slot++) this.#send(plain, slot, out, nowNs);
    this.inner.sendBatch(out);
    if (this.#plain.length < PLAIN_BATCHES_MAX) this.#plain.push(plain);
  }

  #send(plain: TxBatch, slot: number, out: TxBatch, nowNs: number): void {
    const counters = this.#counters;
    const association = this.#table.towards(plain.destinations[slot], plain.destinationPorts[slot]);
    if (association === undefined) {
      if (this.mode === 'prefer') appendSlot(plain, slot, out, this.#inTrains);
      else counters[COUNTER.secure_tx_drop_no_association]++;
      return;
    }
    const keys = association.epoch;
    if (!association.prepare(nowNs)) {
      counters[COUNTER.secure_tx_drop_exhausted]++;
      return;
    }
    if (association.epoch !== keys) counters[COUNTER.secure_rekeys]++;
    seal(association, plain, slot, out);
    counters[COUNTER.secure_tx_sealed]++;
  }

  /** The next packet compensates for a loss. */
  #confirm(association: Association, nowNs: number): void {
    if (!association.prepare(nowNs)) return;
    const out = this.inner.beginBatch();
    if (out === undefined) return;
    const { version, spi, ivHigh, ivLow, terms } = association;
    const offset = out.payloadOffset(0);
    out.count = 1;
    out.lengths[0] = PSP_EMPTY_BYTES;
    out.ipIds[0] = 0;
    out.ecns[0] = 0;
    out.dscps[0] = 0;
    out.sourcePorts[0] = this.udpPort;
    out.destinationPorts[0] = terms.peerUdpPort;
    out.sources[0] = this.address;
    out.destinations[0] = association.address;
    writeEmptyPsp(out.slab, offset, version, spi, ivHigh, ivLow);
    association.seal(out.slab, offset, 0, out.slab, offset, PSP_HEADER_BYTES);
    this.#counters[COUNTER.secure_tx_sealed]++;
    this.inner.sendBatch(out);
  }

  protected override receive(datagram: RxDatagram): void {
    const { bytes, offset, length, source, sourcePort } = datagram;
    if (isPsp(bytes, offset, length)) this.#open(datagram);
    else if (this.mode === 'prefer' && !this.#table.protects(source, sourcePort)) this.onDatagram(datagram);
    else this.#counters[COUNTER.secure_drop_plain]++;
  }

  #open(datagram: RxDatagram): void {
    const counters = this.#counters;
    const { bytes, offset, length, source, sourcePort } = datagram;
    if (!isPspOfRoce(bytes, offset, length) || length > TX_SLOT_BYTES) {
      counters[COUNTER.secure_drop_malformed]++;
      return;
    }
    const association = this.#table.bySpi(pspSpi(bytes, offset));
    if (association === undefined || association.version !== pspVersion(bytes, offset)) {
      counters[COUNTER.secure_drop_unknown_spi]++;
      return;
    }
    const { terms } = association;
    if (!source.equals(association.address) || (terms.hasFixedPort && sourcePort !== terms.peerUdpPort)) {
      counters[COUNTER.secure_drop_address]++;
      return;
    }
    const nowNs = this.#options.nowNs();
    const isEmpty = isEmptyPsp(bytes, offset, length);
    const clearBytes = isEmpty ? PSP_HEADER_BYTES : PSP_CLEAR_BYTES;
    const bth = PAYLOAD_ALIGNMENT;
    const keys = association.epoch;
    const verdict = association.open(bytes, offset, length, clearBytes, this.#opened, bth + BTH_BYTES, nowNs);
    if (verdict !== OPENED) {
      counters[verdict === REPLAYED ? COUNTER.secure_drop_replayed : COUNTER.secure_drop_forged]++;
      return;
    }
    counters[COUNTER.secure_rx_opened]++;
    if (association.epoch !== keys) counters[COUNTER.secure_rekeys]++;
    if (association.hasToConfirm) this.#confirm(association, nowNs);
    if (isEmpty) return;
    copyBytes(bytes, offset + PSP_PREFIX_BYTES, this.#opened, bth, BTH_BYTES);
    const rx = this.#rx;
    rx.length = length - PSP_OVERHEAD_BYTES;
    rx.source = source;
    rx.sourcePort = sourcePort;
    rx.destination = datagram.destination;
    rx.destinationPort = datagram.destinationPort;
    rx.ecn = datagram.ecn;
    rx.dscp = datagram.dscp;
    this.onDatagram(rx);
  }

  override async close(): Promise<void> {
    await super.close();
    for (const { terms } of [...this.#table.all]) this.dissolve(terms.spi);
  }
}

function seal(association: Association, plain: TxBatch, slot: number, out: TxBatch): void {
  const place = out.count++;
  const from = plain.payloadOffset(slot);
  const length = plain.lengths[slot];
  const to = out.payloadOffset(place);
  const { version, spi, ivHigh, ivLow } = association;
  writePsp(out.slab, to, version, spi, ivHigh, ivLow);
  writeInnerUdp(out.slab, to, plain.sourcePorts[slot], plain.destinationPorts[slot], length);
  copyBytes(plain.slab, from, out.slab, to + PSP_PREFIX_BYTES, BTH_BYTES);
  association.seal(plain.slab, from + BTH_BYTES, length - BTH_BYTES, out.slab, to, PSP_CLEAR_BYTES);
  copySlotFields(plain, slot, out, place);
  out.lengths[place] = length + PSP_OVERHEAD_BYTES;
  // The identification as the kernel numbers it; a frame port writes the engine's.
  if (out.trainMax > 1) out.ipIds[place] = out.trainIndex(place);
}
