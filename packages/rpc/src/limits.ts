import { checkOptions, checkWhole, type OptionNames } from 'rocev2/internal/core';
import type { Limits, RpcLimits } from './rpc-link.js';

const NAMES: OptionNames<RpcLimits> = {
  callsMax: true,
  itemsMax: true,
  valueBytesMax: true,
  bulkBytesMax: true,
  elementsMax: true,
};
const ELEMENTS_MAX = 65_536;

export function completeLimits(call: string, limits: RpcLimits): Limits {
  checkOptions(call, limits, NAMES);
  const {
    callsMax = 64,
    itemsMax = 16,
    valueBytesMax = 16 << 20,
    bulkBytesMax = 64 << 20,
    elementsMax = ELEMENTS_MAX,
  } = limits;
  checkWhole('callsMax', callsMax, 1, 0xffff);
  checkWhole('itemsMax', itemsMax, 1, 0xffff);
  checkWhole('valueBytesMax', valueBytesMax, 1, 0x7fff_ffff);
  checkWhole('bulkBytesMax', bulkBytesMax, 1, 0x7fff_ffff);
  checkWhole('elementsMax', elementsMax, 1, 0x7fff_ffff);
  return { callsMax, itemsMax, valueBytesMax, bulkBytesMax, elementsMax };
}
