/** Makes the queue pair of an sK connection: our JSON exchange over TCP, whose connection then stands for the presence of the peer. */

import { randomInt } from 'node:crypto';
import { SYSTEM_CLOCK } from '../../cm/clock.js';
import type { ControlChannel } from '../../cm/control-channel.js';
import type { exchangeAsClient } from '../../cm/exchange.js';
import { initializeQp } from '../../cm/qp-parameters.js';
import type { RecoveryName } from '../../retransmit/recovery.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { SK_CLIENT_QP, SK_SERVER_QP, SkRdmaParts } from '../sk/rdma-parts.js';

const PURPOSE = 'sk-rdma';
const MTU = 4096;
const PSN_RANGE = 1 << 24;

/** What a channel of either side has to be told. */
interface Channel {
  fail(error: Error): void;
  close(): Promise<void>;
}

/**
 * Creates a queue pair in the domain, hands it to `over`, which posts receives, and connects it. The channel fails when the peer's process
 * goes away. When anything goes wrong everything is closed again but the domain.
 */
export async function connectChannel<C extends Channel>(
  control: ControlChannel,
  pd: ProtectionDomain,
  init: typeof SK_CLIENT_QP | typeof SK_SERVER_QP,
  exchange: typeof exchangeAsClient,
  recovery: RecoveryName,
  over: (parts: SkRdmaParts) => Promise<C>,
): Promise<C> {
  const { device } = pd;
  const sendCq = await device.createCq(init.maxSendWr);
  const recvCq = await device.createCq(init.maxRecvWr);
  const qp = await pd.createQp({ sendCq, recvCq, ...init });
  await initializeQp(qp);
  const channel = await over({ pd, qp, sendCq, recvCq, clock: SYSTEM_CLOCK, onClosed: () => control.close() });
  try {
    await exchange(control, {
      qp,
      psn: randomInt(PSN_RANGE),
      mtu: MTU,
      recovery,
      purpose: { service: PURPOSE },
      check: ({ service }) => (service === PURPOSE ? undefined : `the peer does not speak ${PURPOSE}`),
    });
  } catch (error) {
    await channel.close();
    throw error;
  }
  // Nothing more is said on this connection; that it ends is the message.
  control.receive(Number.POSITIVE_INFINITY).catch((error: Error) => channel.fail(error));
  return channel;
}
