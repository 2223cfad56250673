/**
 * How connections and attempts end: REJ, DREQ and DREP (IBTA vol. 1 §12.9.8), and a REQ or REP which shows that the
 * peer has lost its state. Ending a connection requires both IDs, one of which is known only on the path.
 */

import type { IpAddress } from '../packet/address.js';
import type { CmEndpoint, CmState } from './endpoint.js';
import type { RemoteIdentity } from './endpoint-table.js';
import type { MadRetransmission } from './mad-retransmission.js';
import { ABOUT_REP, ABOUT_REQ, GUID_BYTES } from './mad-sender.js';
import { buildMad, type MessageFields } from './messages.js';
import { NO_DATA, type ProtocolParts } from './protocol-parts.js';
import { REJ_CONSUMER_DEFINED, REJ_TIMEOUT } from './reject-reason.js';

/** States in which the peer may end the connection by a DREQ: it knows our queue pair. */
const DISCONNECTABLE: readonly CmState[] = ['REP_SENT', 'REP_RCVD', 'ESTABLISHED', 'DREQ_SENT'];
/** In these states a REJ also means that the peer has given up. */
const CONNECTED: readonly CmState[] = ['REP_RCVD', 'ESTABLISHED', 'DREQ_SENT'];

export class Teardown {
  readonly #parts: ProtocolParts;
  readonly #retransmission: MadRetransmission;
  readonly #transactionBase: bigint;

  constructor(parts: ProtocolParts, retransmission: MadRetransmission) {
    this.#parts = parts;
    this.#retransmission = retransmission;
    this.#transactionBase = BigInt(parts.options.random.u32()) << 32n;
  }

  reject(endpoint: CmEndpoint, privateData: Uint8Array, now: number): void {
    const about = endpoint.state === 'REQ_RCVD' ? ABOUT_REQ : ABOUT_REP;
    this.#parts.mads.reject(endpoint, { about, reason: REJ_CONSUMER_DEFINED, privateData }, now);
    this.#parts.table.remove(endpoint);
  }

  /** Harmless when it has ended. */
  disconnect(endpoint: CmEndpoint, now: number): void {
    const { localCommId, remoteCommId, remoteQpn, state } = endpoint;
    if (state !== 'ESTABLISHED' && state !== 'REP_SENT') return;
    this.#parts.table.enter(endpoint, 'DREQ_SENT');
    const transactionId = this.#transactionBase | BigInt(localCommId);
    this.#retransmission.start(
      endpoint,
      buildMad('DREQ', transactionId, { localCommId, remoteCommId, remoteQpn }),
      now,
    );
  }

  abandon(endpoint: CmEndpoint, now: number): void {
    endpoint.onEvent = () => {};
    switch (endpoint.state) {
      case 'TIMEWAIT':
      case 'CLOSED':
        return;
      case 'REQ_SENT':
        this.#parts.mads.reject(endpoint, { about: ABOUT_REQ, reason: REJ_TIMEOUT }, now);
        break;
      case 'REQ_RCVD':
      case 'REP_RCVD':
        this.reject(endpoint, NO_DATA, now);
        break;
      default:
        this.disconnect(endpoint, now);
    }
    this.#parts.table.remove(endpoint);
  }

  onReject(source: IpAddress, fields: MessageFields<'REJ'>, now: number): void {
    const endpoint = this.#rejected(source, fields);
    if (endpoint === undefined) return;
    const { table, counters } = this.#parts;
    const knowsPeer = endpoint.remoteCommId !== 0;
    if (knowsPeer && endpoint.remoteCommId !== fields.localCommId) counters.unmatched++;
    else if (endpoint.state === 'TIMEWAIT') counters.duplicates++;
    else {
      if (CONNECTED.includes(endpoint.state)) table.enterTimewait(endpoint, now);
      else table.remove(endpoint);
      endpoint.onEvent({ type: 'REJECTED', reason: fields.reason, privateData: fields.privateData });
    }
  }

  /** A peer whose wait has timed out does not know our ID yet, and sends its GUID as additional information. */
  #rejected(source: IpAddress, fields: MessageFields<'REJ'>): CmEndpoint | undefined {
    const { table } = this.#parts;
    if (fields.remoteCommId !== 0 || fields.reason !== REJ_TIMEOUT || fields.infoLength < GUID_BYTES) {
      return table.match(source, fields.remoteCommId);
    }
    const guid = new DataView(fields.info.buffer, fields.info.byteOffset).getBigUint64(0);
    const endpoint = table.byRemoteId(source, guid, fields.localCommId);
    return table.match(source, endpoint?.localCommId ?? 0);
  }

  /** It is answered even if the connection is unknown: the peer has lost our DREP. */
  onDisconnectRequest(source: IpAddress, transactionId: bigint, fields: MessageFields<'DREQ'>, now: number): void {
    const { table, mads, counters } = this.#parts;
    const { localCommId, remoteCommId } = fields;
    const endpoint = table.match(source, remoteCommId, localCommId);
    const isOver = endpoint === undefined || endpoint.state === 'TIMEWAIT';
    const mayEnd = !isOver && DISCONNECTABLE.includes(endpoint.state) && endpoint.localQpn === fields.remoteQpn;
    if (!isOver && !mayEnd) {
      counters.unmatched++;
      return;
    }
    mads.answer(source, 'DREP', transactionId, { localCommId: remoteCommId, remoteCommId: localCommId });
    if (endpoint === undefined) return;
    if (isOver) counters.duplicates++;
    else this.#disconnected(endpoint, now);
  }

  onDisconnectReply(source: IpAddress, fields: MessageFields<'DREP'>, now: number): void {
    const endpoint = this.#parts.table.match(source, fields.remoteCommId, fields.localCommId);
    if (endpoint === undefined) return;
    if (endpoint.state === 'DREQ_SENT') this.#disconnected(endpoint, now);
    else this.#parts.counters.duplicates++;
  }

  #disconnected(endpoint: CmEndpoint, now: number): void {
    this.#parts.table.enterTimewait(endpoint, now);
    endpoint.onEvent({ type: 'DISCONNECTED' });
  }

  /** Returns true if a connection with this remote QP exists, whose state the peer has lost: it ends now. */
  replaceStale(source: IpAddress, { localCaGuid, localQpn }: RemoteIdentity): boolean {
    const stale = this.#parts.table.byRemoteQpn(source, localCaGuid, localQpn);
    if (stale === undefined) return false;
    if (stale.state === 'TIMEWAIT') return true;
    const { onEvent } = stale;
    this.#parts.table.remove(stale);
    onEvent({ type: 'DISCONNECTED' });
    return true;
  }
}
