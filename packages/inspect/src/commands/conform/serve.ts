/** `rocev2 conform serve`: a target until Ctrl-C. */

import { ConnectionManager } from '../../cm/connection-manager.js';
import { type ConformServeCounts, ConformService } from '../../conform/service.js';
import type { IpAddress } from '../../packet/address.js';
import { openDevice } from '../../verbs/open-device.js';
import { counted } from '../counted.js';
import { type FrameFlags, frameDeviceOptions } from '../frame-wire.js';
import type { NicOptions } from '../nic-options.js';
import type { Output } from '../output.js';
import { whileListening } from '../rdma-cm/while-listening.js';
import { type RecoveryFlags, recoveryOf } from '../recovery-options.js';

/** Options of `rocev2 conform serve`. */
export interface ConformServeOptions extends FrameFlags, NicOptions, RecoveryFlags {
  /** IP address of this side. */
  readonly bind: IpAddress;
  /** rdma_cm port. */
  readonly port: number;
}

/** The fields of `conform serve --json`. */
export interface ConformServeResult extends ConformServeCounts {
  /** IP address of the target. */
  readonly address: string;
  /** rdma_cm port. */
  readonly port: number;
}

/** Runs until Ctrl-C, which is the normal end of a server. */
export async function runConformServe(options: ConformServeOptions, output: Output): Promise<void> {
  const { bind, port, io, engine, spin } = options;
  const recovery = recoveryOf(options);
  const wire = await frameDeviceOptions(options);
  await using device = await openDevice({ address: bind.text, io, engine, spin, ...wire });
  await using cm = await ConnectionManager.open(device);
  const service = await ConformService.create(device, recovery);
  output.note(`RDMA by ${device.portDescription}`);
  output.note('whoever connects may write to the memory of this target, which holds nothing else; Ctrl-C ends it');
  await whileListening(cm, cm.listen(port), output, (listener) => service.serve(listener));
  const { connections, refused } = service.counts;
  output.line(`${counted(connections, 'connection')}, ${counted(refused, 'request')} refused`);
  output.document('conform-serve', { address: bind.text, port, connections, refused });
}
