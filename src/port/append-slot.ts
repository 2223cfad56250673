import { copyBytes } from '../core/bytes.js';
import { renumberIcrc } from '../packet/icrc.js';
import type { TxBatch } from './datagram.js';

/** Copies a whole slot: `length` bytes of payload and the elements of the arrays. */
export function copySlot(from: TxBatch, fromSlot: number, to: TxBatch, toSlot: number): void {
  copyBytes(from.slab, from.payloadOffset(fromSlot), to.slab, to.payloadOffset(toSlot), from.lengths[fromSlot]);
  copySlotFields(from, fromSlot, to, toSlot);
}

/** Copies the array elements of a slot, but not its bytes. */
export function copySlotFields(from: TxBatch, fromSlot: number, to: TxBatch, toSlot: number): void {
  to.lengths[toSlot] = from.lengths[fromSlot];
  to.ipIds[toSlot] = from.ipIds[fromSlot];
  to.ecns[toSlot] = from.ecns[fromSlot];
  to.dscps[toSlot] = from.dscps[fromSlot];
  to.sourcePorts[toSlot] = from.sourcePorts[fromSlot];
  to.destinationPorts[toSlot] = from.destinationPorts[fromSlot];
  to.sources[toSlot] = from.sources[fromSlot];
  to.destinations[toSlot] = from.destinations[fromSlot];
}

/**
 * `inTrains`: the IPv4 identification is the index in a train, which changes here, and the ICRC is corrected for it.
 */
export function appendSlot(from: TxBatch, slot: number, to: TxBatch, inTrains: boolean): void {
  const place = to.count++;
  copySlot(from, slot, to, place);
  if (!inTrains) return;
  const id = to.trainIndex(place);
  if (id !== to.ipIds[place]) {
    renumberIcrc(to.slab, to.payloadOffset(place), to.lengths[place], to.ipIds[place], id);
    to.ipIds[place] = id;
  }
}
