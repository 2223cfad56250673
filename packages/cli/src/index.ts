/** The entry of @rocev2/cli. */

export type { DiskServer } from './disk/disk-control.js';
export type { TransferPlan } from './transfer/endpoint.js';
export type { TransferResult } from './transfer/result.js';
export type { WindowResult } from './window/experiment.js';
