/**
 * Requests that a READ response or atomic ACK answers, as packets (IBTA vol. 1 §9.4.4, §9.4.5, annex A19): AckReq is
 * always set.
 */

import { WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_WRITE, WR_FLUSH } from '../memory/ring/enums.js';
import type { SendWqe } from '../memory/ring/work-queue.js';
import * as op from '../packet/opcode.js';
import { BTH_MIGREQ, writeAtomicEth, writeBth, writeFeth, writeReth } from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import type { Segmenter } from './segmenter.js';
import type { QueuePairParts } from './transport.js';

/** Fields of a request that the connection supplies. */
type Parts = Pick<QueuePairParts, 'attributes' | 'link' | 'congestion'>;

/** Writes a request for `bytes` of the READ's data from byte `offset` on; its first response will carry `psn`. */
export function writeReadRequest(
  { attributes, link, congestion }: Parts,
  batch: TxBatch,
  wqe: SendWqe,
  psn: number,
  offset: number,
  bytes: number,
): void {
  const low = wqe.remoteLow + offset;
  const high = (wqe.remoteHigh + Math.floor(low / 0x1_0000_0000)) >>> 0;
  const b = batch.slab;
  let o = batch.payloadOffset(batch.count);
  o = writeBth(b, o, op.RC_READ_REQUEST, BTH_MIGREQ, attributes.destQpn, true, psn);
  o = writeReth(b, o, high, low >>> 0, wqe.rkey, bytes);
  link.seal(batch, o, congestion.dataEcn);
}

/** Writes the request that the segmenter has read: an atomic, a FLUSH or an ATOMIC WRITE. */
export function writeSingleRequest(parts: Parts, batch: TxBatch, segmenter: Segmenter, psn: number): void {
  const { wqe } = segmenter;
  if (wqe.opcode === WR_FLUSH) writeFlushRequest(parts, batch, wqe, psn);
  else if (wqe.opcode === WR_ATOMIC_WRITE) writeAtomicWriteRequest(parts, batch, segmenter, psn);
  else writeAtomicRequest(parts, batch, wqe, psn);
}

function writeFlushRequest({ attributes, link, congestion }: Parts, batch: TxBatch, wqe: SendWqe, psn: number): void {
  const b = batch.slab;
  let o = batch.payloadOffset(batch.count);
  o = writeBth(b, o, op.RC_FLUSH, BTH_MIGREQ, attributes.destQpn, true, psn);
  o = writeFeth(b, o, wqe.immediate);
  o = writeReth(b, o, wqe.remoteHigh, wqe.remoteLow, wqe.rkey, wqe.messageBytes);
  link.seal(batch, o, congestion.dataEcn);
}

function writeAtomicWriteRequest(parts: Parts, batch: TxBatch, segmenter: Segmenter, psn: number): void {
  const { attributes, link, congestion } = parts;
  const { wqe } = segmenter;
  const b = batch.slab;
  let o = batch.payloadOffset(batch.count);
  o = writeBth(b, o, op.RC_ATOMIC_WRITE, BTH_MIGREQ, attributes.destQpn, true, psn);
  o = writeReth(b, o, wqe.remoteHigh, wqe.remoteLow, wqe.rkey, wqe.messageBytes);
  o = segmenter.copyData(b, o);
  link.seal(batch, o, congestion.dataEcn);
}

function writeAtomicRequest({ attributes, link, congestion }: Parts, batch: TxBatch, wqe: SendWqe, psn: number): void {
  const isCompare = wqe.opcode === WR_ATOMIC_CMP_AND_SWP;
  const opcode = isCompare ? op.RC_COMPARE_SWAP : op.RC_FETCH_ADD;
  const b = batch.slab;
  let o = batch.payloadOffset(batch.count);
  o = writeBth(b, o, opcode, BTH_MIGREQ, attributes.destQpn, true, psn);
  o = writeAtomicEth(
    b,
    o,
    wqe.remoteHigh,
    wqe.remoteLow,
    wqe.rkey,
    isCompare ? wqe.swapHigh : wqe.compareAddHigh,
    isCompare ? wqe.swapLow : wqe.compareAddLow,
    isCompare ? wqe.compareAddHigh : 0,
    isCompare ? wqe.compareAddLow : 0,
  );
  link.seal(batch, o, congestion.dataEcn);
}
