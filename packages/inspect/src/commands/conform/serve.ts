import {
  counted,
  defineDocument,
  type FrameFlags,
  frameDeviceOptions,
  type NicFlags,
  nicOf,
  type Output,
  type RecoveryFlags,
  recoveryOf,
  whileListening,
} from '@rocev2/command';
import { ConnectionManager } from 'rocev2/internal/cm';
import type { IpAddress } from 'rocev2/internal/packet';
import { openDevice } from 'rocev2/internal/verbs';
import { type ConformServeCounts, ConformService } from '../../conform/service.js';

const CONFORM_SERVE_DOCUMENT = defineDocument<ConformServeResult>('conform-serve');

export interface ConformServeOptions extends FrameFlags, NicFlags, RecoveryFlags {
  readonly bind: IpAddress;
  readonly port: number;
}

/** The fields of `conform serve --json`. */
export interface ConformServeResult extends ConformServeCounts {
  /** IP address of the target. */
  readonly address: string;
  /** rdma_cm port. */
  readonly port: number;
}

export async function runConformServe(options: ConformServeOptions, output: Output): Promise<void> {
  const { bind, port } = options;
  const recovery = recoveryOf(options);
  const wire = await frameDeviceOptions(options);
  await using device = await openDevice({ address: bind.text, ...nicOf(options), ...wire });
  await using cm = await ConnectionManager.open(device);
  const service = await ConformService.create(device, recovery);
  output.note(`RDMA by ${device.portDescription}`);
  output.note(
    'any host that connects may write to the memory of this target, which holds no other data; Ctrl-C ends it',
  );
  await whileListening(cm, cm.listen(port), output, (listener) => service.serve(listener));
  const { connections, refused } = service.counts;
  output.line(`${counted(connections, 'connection')}, ${counted(refused, 'request')} refused`);
  output.document(CONFORM_SERVE_DOCUMENT, { address: bind.text, port, connections, refused });
}
