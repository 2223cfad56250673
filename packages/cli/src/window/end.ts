import { randomInt } from 'node:crypto';
import type { NicFlags } from '@rocev2/command';
import { type ControlChannel, type ExchangeOptions, type exchangeAsClient, initializeQp } from 'rocev2/internal/cm';
import { PSN_COUNT } from 'rocev2/internal/packet';
import { STANDARD_RECOVERY } from 'rocev2/internal/retransmit';
import { openDevice, type ProtectionDomain, type QueuePair, type RdmaDevice } from 'rocev2/internal/verbs';
import { WindowLink, windowQueueDepths } from 'rocev2/internal/window';

export const LOOPBACK = '127.0.0.1';
const MTU = 4096;

export interface WindowEnd {
  readonly device: RdmaDevice;
  readonly pd: ProtectionDomain;
  readonly qp: QueuePair;
  readonly link: WindowLink;
}

export async function openWindowEnd(
  channel: ControlChannel,
  blocksMax: number,
  exchange: typeof exchangeAsClient,
  nic: NicFlags,
): Promise<WindowEnd> {
  const device = await openDevice({ address: LOOPBACK, udpPort: 0, ...nic });
  const depths = windowQueueDepths(blocksMax);
  const sendCq = await device.createCq(2 * depths.maxSendWr);
  const recvCq = await device.createCq(2 * depths.maxRecvWr);
  const pd = await device.createPd();
  const qp = await pd.createQp({ sendCq, recvCq, ...depths });
  await initializeQp(qp);
  const link = await WindowLink.over({ pd, qp, sendCq, recvCq, clock: pd.device.clock }, blocksMax);
  const options: ExchangeOptions = { qp, psn: randomInt(PSN_COUNT), mtu: MTU, recovery: STANDARD_RECOVERY };
  await exchange(channel, options);
  return { device, pd, qp, link };
}
