/**
 * Makes hostile datagrams: noise, recorded packets with bytes changed, and crafted ones that know QPNs, PSNs, keys and addresses and
 * carry a good ICRC, so that they get as deep as a malicious peer could.
 */

import { readdirSync } from 'node:fs';
import { writeU24 } from '../../src/core/bytes.js';
import type { RandomSource } from '../../src/core/random.js';
import type { IpAddress } from '../../src/packet/address.js';
import { SYNDROME_ACK } from '../../src/packet/aeth.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../../src/packet/frame.js';
import { IcrcFlow, sealIcrc } from '../../src/packet/icrc.js';
import * as op from '../../src/packet/opcode.js';
import { HDR_SACK, OPCODES, PLACE_NONE } from '../../src/packet/opcode.js';
import { psnAdd } from '../../src/packet/psn.js';
import { emitRoce, type RoceFields } from '../../src/packet/roce.js';
import { IP_ID_UNKNOWN, type RxDatagram } from '../../src/port/datagram.js';
import { Dice, fillRandom } from '../support/dice.js';
import { readPackets } from '../support/pcapng.js';
import {
  MTU,
  OWED,
  PEER_SOURCE_PORT,
  PEERS,
  READ_LAST_BYTES,
  RECEIVE_BYTES,
  type Target,
  UD_QKEY,
  VICTIM,
  type Victim,
} from './victim.js';

const ICRC_BYTES = 4;
const KNOWN_OPCODES = OPCODES.flatMap((info) => (info === undefined ? [] : [info.opcode]));
/** Those that a connected queue pair takes. */
const RC_OPCODES = KNOWN_OPCODES.filter((opcode) => opcode < 0x20 || opcode === 0xd1);

const REQUESTS = [
  op.RC_SEND_ONLY,
  op.RC_SEND_ONLY_IMM,
  op.RC_SEND_ONLY_INV,
  op.RC_SEND_FIRST,
  op.RC_WRITE_ONLY,
  op.RC_WRITE_ONLY_IMM,
  op.RC_WRITE_FIRST,
  op.RC_READ_REQUEST,
  op.RC_READ_REQUEST,
  op.RC_COMPARE_SWAP,
  op.RC_FETCH_ADD,
];
/** What UC has of them; its opcodes are these on another base. */
const DATA_REQUESTS = REQUESTS.filter((opcode) => opcode < op.RC_READ_REQUEST);
const SEND_LASTS = [op.RC_SEND_LAST, op.RC_SEND_LAST_IMM, op.RC_SEND_LAST_INV];
const WRITE_LASTS = [op.RC_WRITE_LAST, op.RC_WRITE_LAST_IMM];

type Fields = { -readonly [K in keyof RoceFields]?: RoceFields[K] };

interface Draft {
  readonly fields: Fields;
  readonly payload: Uint8Array;
}

/** The UDP payloads of all captures. */
function recordedPackets(): Uint8Array[] {
  const folder = new URL('../golden/', import.meta.url);
  const info = new FrameInfo();
  return readdirSync(folder)
    .filter((name) => name.endsWith('.pcapng'))
    .flatMap((name) => readPackets(new URL(name, folder)))
    .flatMap((frame) =>
      parseFrame(frame, 0, frame.length, info) === FRAME_OK && info.payloadBytes < 600
        ? [frame.slice(info.payloadOffset, info.payloadOffset + info.payloadBytes)]
        : [],
    );
}

export class Attacker {
  readonly #dice: Dice;
  readonly #victim: Victim;
  readonly #recorded = recordedPackets();
  readonly #flows = new Map<string, IcrcFlow>();

  constructor(random: RandomSource, victim: Victim) {
    this.#dice = new Dice(random);
    this.#victim = victim;
  }

  next(): RxDatagram {
    const dice = this.#dice;
    const target = dice.pick(this.#victim.targets);
    const bytes = dice.weighted<() => Uint8Array>([
      [10, () => this.#noise()],
      [20, () => this.#mutated(target)],
      [70, () => this.#crafted(target)],
    ])();
    return this.#datagram(bytes, target);
  }

  #datagram(bytes: Uint8Array, target: Target): RxDatagram {
    const dice = this.#dice;
    const source = dice.chance(0.96) ? target.peer : dice.pick(PEERS);
    const destination = dice.chance(0.98) ? VICTIM : dice.pick(PEERS);
    const sourcePort = dice.chance(0.95) ? PEER_SOURCE_PORT : dice.int(0, 0xffff);
    const ipId = dice.int(0, 0xffff);
    if (bytes.length >= ICRC_BYTES && dice.chance(0.95)) {
      sealIcrc(this.#flow(source, destination, sourcePort), bytes, 0, bytes.length, ipId, undefined);
    }
    return {
      bytes,
      offset: 0,
      length: bytes.length,
      source,
      sourcePort,
      destination,
      destinationPort: 4791,
      ecn: dice.int(0, 3),
      dscp: 0,
      ipId: dice.chance(0.9) ? ipId : IP_ID_UNKNOWN,
    };
  }

  #flow(source: IpAddress, destination: IpAddress, sourcePort: number): IcrcFlow {
    const key = `${source} ${destination} ${sourcePort}`;
    let flow = this.#flows.get(key);
    if (flow === undefined) {
      if (this.#flows.size > 1000) this.#flows.clear();
      flow = new IcrcFlow(source, destination, sourcePort, 4791);
      this.#flows.set(key, flow);
    }
    return flow;
  }

  #noise(): Uint8Array {
    const bytes = new Uint8Array(this.#dice.int(0, 120));
    fillRandom(bytes, this.#dice.source);
    return bytes;
  }

  /** A recorded packet, readdressed to a live queue pair most of the time, cut, extended or changed. */
  #mutated(target: Target): Uint8Array {
    const dice = this.#dice;
    const seed = dice.pick(this.#recorded);
    const bytes = new Uint8Array(Math.max(0, seed.length + dice.pick([0, 0, 0, -4, 4, dice.int(-40, 40)])));
    bytes.set(seed.subarray(0, bytes.length));
    if (bytes.length >= 12 && dice.chance(0.8)) {
      writeU24(bytes, 5, target.qp.qpn);
      if (dice.chance(0.7)) writeU24(bytes, 9, psnAdd(dice.pick([target.rqPsn, target.sqPsn]), dice.int(-8, 2)));
    }
    for (let changes = dice.int(0, 3); changes > 0 && bytes.length > 0; changes--) {
      bytes[dice.int(0, Math.min(bytes.length, 64) - 1)] = dice.source.u32();
    }
    return bytes;
  }

  /** A packet as an honest peer might send it next, with one thing wrong in one of three. */
  #crafted(target: Target): Uint8Array {
    const dice = this.#dice;
    const mayAnswer = target.state === 'RTS' || target.state === 'SQD';
    let draft: Draft;
    if (target.qp.type === 'UD') draft = this.#datagramMessage();
    else if (dice.chance(0.05)) draft = { fields: { opcode: op.CNP, becn: true }, payload: this.#payload(0) };
    else if (target.qp.type === 'UC') draft = this.#unreliableRequest(target);
    else draft = mayAnswer && dice.chance(0.4) ? this.#answer(target) : this.#request(target, REQUESTS);
    const common: Fields = { destQpn: target.qp.qpn, ackReq: dice.chance(0.6), solicited: dice.chance(0.3) };
    const fields: Fields = { ...common, ...draft.fields };
    let { payload } = draft;
    if (dice.chance(0.35)) payload = this.#spoil(target, fields, payload);
    const body = emitRoce({ opcode: 0, ...fields }, payload);
    const bytes = new Uint8Array(body.length + ICRC_BYTES);
    bytes.set(body);
    if (dice.chance(0.01)) bytes[1] ^= 1 << dice.int(0, 7); // TVer, pad count
    return bytes;
  }

  #payload(length: number): Uint8Array {
    const payload = new Uint8Array(length);
    fillRandom(payload, this.#dice.source);
    return payload;
  }

  #datagramMessage(): Draft {
    const dice = this.#dice;
    const opcode = dice.pick([op.UD_SEND_ONLY, op.UD_SEND_ONLY_IMM]);
    return { fields: { opcode, qkey: UD_QKEY, sourceQpn: 77 }, payload: this.#payload(dice.int(0, 200)) };
  }

  /** The same of an unreliable connection; SENDs that invalidate are no opcodes there. */
  #unreliableRequest(target: Target): Draft {
    const { fields, payload } = this.#request(target, DATA_REQUESTS);
    const opcode = fields.opcode === op.RC_SEND_LAST_INV ? op.RC_SEND_LAST : fields.opcode!;
    return { fields: { ...fields, opcode: op.UC_BASE | opcode }, payload };
  }

  /** The next request in sequence. Messages of two packets are begun and ended. */
  #request(target: Target, opcodes: readonly number[]): Draft {
    const dice = this.#dice;
    const { open, readOnly } = this.#victim.regions;
    const psn = target.rqPsn;
    const at = (length: number) => addressFields(open.addr + BigInt(8 * dice.int(0, (open.length - length) / 8)));
    const immediates = { immediate: dice.source.u32(), invalidateRkey: this.#hostileKey() };
    if (target.message >= 0) {
      const lasts = target.message === op.RC_SEND_FIRST ? SEND_LASTS : WRITE_LASTS;
      const bytes = RECEIVE_BYTES - MTU;
      target.message = -1;
      target.rqPsn = psnAdd(psn, 1);
      return { fields: { opcode: dice.pick(lasts), psn, ...immediates }, payload: this.#payload(bytes) };
    }
    const opcode = dice.pick(opcodes);
    const rkey = open.rkey;
    let payload = this.#payload(0);
    let length = dice.int(0, RECEIVE_BYTES);
    let psns = 1;
    if (opcode === op.RC_SEND_FIRST || opcode === op.RC_WRITE_FIRST) {
      target.message = opcode;
      length = RECEIVE_BYTES;
      payload = this.#payload(MTU);
    } else if (opcode === op.RC_READ_REQUEST) {
      psns = Math.max(1, Math.ceil(length / MTU));
      if (dice.chance(0.3)) {
        target.rqPsn = psnAdd(psn, psns);
        const fields = { opcode, psn, dmaLength: length, ...addressFields(readOnly.addr), rkey: readOnly.rkey };
        return { fields, payload };
      }
    } else if (opcode === op.RC_COMPARE_SWAP || opcode === op.RC_FETCH_ADD) length = 8;
    else {
      length = dice.int(0, MTU);
      payload = this.#payload(length);
    }
    target.rqPsn = psnAdd(psn, psns);
    return { fields: { opcode, psn, dmaLength: length, rkey, ...at(length), ...immediates, swapLow: 5 }, payload };
  }

  /** An answer to what the victim has outstanding, or a refusal of it. */
  #answer(target: Target): Draft {
    const dice = this.#dice;
    const k = dice.int(0, OWED.length - 1);
    const psn = psnAdd(target.sqPsn, k - OWED.length);
    const msn = dice.int(0, 0xffffff);
    if (dice.chance(0.2)) {
      const syndrome = dice.pick([0x60, 0x60, 0x21, 0x22, 0x61, 0x62, 0x63]);
      return { fields: { opcode: op.RC_ACK, psn, msn, syndrome }, payload: this.#payload(0) };
    }
    if (target.recovery === 'selective-repeat' && dice.chance(0.2)) {
      return {
        fields: { opcode: op.VENDOR_SACK, psn, msn, syndrome: 0x60 },
        payload: this.#payload(4 * dice.int(1, 32)),
      };
    }
    const syndrome = SYNDROME_ACK;
    switch (OWED[k]) {
      case 'ack':
        return { fields: { opcode: op.RC_ACK, psn, msn, syndrome }, payload: this.#payload(0) };
      case 'atomic':
        return { fields: { opcode: op.RC_ATOMIC_ACK, psn, msn, syndrome, origLow: 9 }, payload: this.#payload(0) };
      case 'first':
        return { fields: { opcode: op.RC_READ_RESPONSE_FIRST, psn, msn, syndrome }, payload: this.#payload(MTU) };
      case 'last':
        return {
          fields: { opcode: op.RC_READ_RESPONSE_LAST, psn, msn, syndrome },
          payload: this.#payload(READ_LAST_BYTES),
        };
    }
  }

  /** Makes one field a lie. Returns the payload to use. */
  #spoil(target: Target, fields: Fields, payload: Uint8Array): Uint8Array {
    const dice = this.#dice;
    const opcode = fields.opcode ?? 0;
    const lies: ReadonlyArray<() => void> = [
      () => {
        fields.psn = psnAdd(fields.psn ?? 0, dice.chance(0.8) ? dice.int(-12, 40) : dice.int(0, 0xffffff));
      },
      () => {
        fields.opcode = dice.chance(0.8) ? dice.pick(RC_OPCODES) : dice.pick(KNOWN_OPCODES);
      },
      () => Object.assign(fields, addressFields(this.#hostileAddress())),
      () => {
        fields.rkey = this.#hostileKey();
      },
      () => {
        fields.dmaLength = dice.chance(0.5) ? dice.int(0, 6 * MTU) : dice.source.u32();
      },
      () => {
        fields.syndrome = dice.int(0, 255);
      },
      () => {
        fields.pkey = dice.int(0, 0xffff);
      },
      () => {
        fields.qkey = dice.source.u32();
      },
      () => {
        fields.destQpn = dice.chance(0.5) ? dice.int(0, 0xffffff) : dice.pick(this.#victim.targets).qp.qpn;
      },
      () => {
        fields.destQpn = target.qp.qpn;
        payload = this.#payload(dice.pick([0, 1, 3, MTU - 1, MTU, MTU + 1, MTU + 4, dice.int(0, 1100)]));
      },
      () => {
        // Again, a little later: what an honest duplicate looks like, and a READ or atomic asked for once more.
        if (opcode < 0x0d) fields.psn = psnAdd(fields.psn ?? 0, -dice.int(1, 6));
      },
    ];
    dice.pick(lies)();
    const info = OPCODES[fields.opcode ?? 0]!;
    const takesPayload = info.place !== PLACE_NONE || (info.headers & HDR_SACK) !== 0;
    return takesPayload || dice.chance(0.1) ? payload : this.#payload(0);
  }

  /** In some region, at its edges, or nowhere. */
  #hostileAddress(): bigint {
    const dice = this.#dice;
    const { addr, length } = dice.pick(Object.values(this.#victim.regions));
    return BigInt.asUintN(
      64,
      dice.weighted<() => bigint>([
        [3, () => addr + BigInt(dice.int(0, length))],
        [3, () => addr + BigInt(length - dice.int(-8, MTU))],
        [1, () => addr - BigInt(dice.int(1, 8))],
        [1, () => 0n - BigInt(dice.int(1, 300))],
        [1, () => dice.u64()],
      ])(),
    );
  }

  #hostileKey(): number {
    const dice = this.#dice;
    const key = dice.pick(Object.values(this.#victim.regions)).rkey;
    if (dice.chance(0.6)) return key;
    return dice.chance(0.5) ? (key ^ (1 << dice.int(0, 31))) >>> 0 : dice.source.u32();
  }
}

function addressFields(address: bigint): Fields {
  return { vaHigh: Number(address >> 32n), vaLow: Number(address & 0xffffffffn) };
}
