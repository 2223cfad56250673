/**
 * The checks that every received packet passes before its queue pair sees it, in the fixed order of IBTA vol. 1 §9.6
 * and annex A17. Each failure has a counter, so that received = accepted + all drops.
 */

import { COUNTER } from '../memory/ring/counters.js';
import { checkIcrc, ICRC_BAD, ICRC_OK_ID_SOLVED, type IcrcFlow } from '../packet/icrc.js';
import { PARSE_OK, PARSE_REASONS, parseRoce, RocePacket } from '../packet/roce.js';
import { ECN_CE, type RxDatagram } from '../port/datagram.js';
import type { NicQueuePair } from '../qp/nic-queue-pair.js';
import { ReceivedTrain } from './received-train.js';

const RX_PACKETS = COUNTER.rx_packets;
const RX_BYTES = COUNTER.rx_bytes;
const RX_ACCEPTED = COUNTER.rx_accepted;
const ALL_PARTITIONS = 0x7fff;

export class ReceivePath {
  /** Malformed packets by parse reason, in the order of PARSE_REASONS. */
  readonly parseDrops = new Float64Array(PARSE_REASONS.length);
  readonly train = new ReceivedTrain();
  readonly #counters: Float64Array;
  readonly #queuePairs: ReadonlyMap<number, NicQueuePair>;
  readonly #checksIcrc: boolean;
  readonly #packet = new RocePacket();

  /** Without `checksIcrc` the last check passes. */
  constructor(counters: Float64Array, queuePairs: ReadonlyMap<number, NicQueuePair>, checksIcrc: boolean) {
    this.#counters = counters;
    this.#queuePairs = queuePairs;
    this.#checksIcrc = checksIcrc;
  }

  /** Checks a datagram, and passes it to its queue pair if it is valid. */
  receive(datagram: RxDatagram, now: number): void {
    const counters = this.#counters;
    const packet = this.#packet;
    counters[RX_PACKETS]++;
    counters[RX_BYTES] += datagram.length;
    const reason = parseRoce(datagram.bytes, datagram.offset, datagram.length, packet);
    if (reason !== PARSE_OK) {
      this.parseDrops[reason]++;
      counters[COUNTER.rx_drop_parse]++;
      return;
    }
    const qp = this.#queuePairs.get(packet.destQpn);
    if (qp === undefined) counters[COUNTER.rx_drop_no_qp]++;
    else if (!qp.carries(packet)) counters[COUNTER.rx_drop_qp_type]++;
    else if (!qp.accepts(packet)) counters[COUNTER.rx_drop_qp_state]++;
    else if (!qp.peer.matchesAddresses(datagram)) counters[COUNTER.rx_drop_address]++;
    else if (!qp.peer.matchesSourcePort(packet, datagram)) counters[COUNTER.rx_drop_source_port]++;
    else if ((packet.pkey & ALL_PARTITIONS) !== ALL_PARTITIONS) counters[COUNTER.rx_drop_pkey]++;
    else if (!qp.matchesQkey(packet)) counters[COUNTER.rx_drop_qkey]++;
    else if (this.#icrcHolds(qp.peer.receiveFlow(datagram), datagram)) {
      counters[RX_ACCEPTED]++;
      if (datagram.ecn === ECN_CE) counters[COUNTER.np_ecn_marked_roce_packets]++;
      qp.receive(packet, datagram, now);
    }
  }

  #icrcHolds(flow: IcrcFlow, datagram: RxDatagram): boolean {
    if (!this.#checksIcrc || this.train.holds(flow, datagram)) return true;
    const verdict = checkIcrc(flow, datagram.bytes, datagram.offset, datagram.length, datagram.ipId);
    if (verdict === ICRC_BAD) {
      this.#counters[COUNTER.rx_icrc_errors]++;
      return false;
    }
    if (verdict === ICRC_OK_ID_SOLVED) this.#counters[COUNTER.rx_icrc_id_solved]++;
    return true;
  }
}
