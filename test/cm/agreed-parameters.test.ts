/** Parameters of a recovery scheme that both ends need to be the same. */

import { afterAll, expect, it } from 'vitest';
import { Connection, type ConnectionOptions, connect, listen, openDevice, type Refusal } from '../../src/index.js';
import { GoBackNReceiver, GoBackNSender } from '../../src/retransmit/go-back-n.js';
import { type RecoveryOptions, registerRecovery } from '../../src/retransmit/recovery-schemes.js';

/** An address of this file alone. */
const ADDRESS = '127.68.0.1';

registerRecovery({
  name: 'test-agreed',
  summary: 'go-back-N with parameters that do nothing',
  parameters: {
    span: { default: 8, min: 1, max: 64, whole: true, agreed: true },
    own: { default: 1, min: 0, max: 9 },
  },
  sender: () => new GoBackNSender(),
  receiver: () => new GoBackNReceiver(),
});

const options = (parameters: object): ConnectionOptions => ({
  recovery: { name: 'test-agreed', ...parameters } as unknown as RecoveryOptions,
});

const devices = await Promise.all([ADDRESS, ADDRESS].map((address) => openDevice({ address, udpPort: 0 })));
afterAll(() => Promise.all(devices.map((device) => device.close())));

/** What connecting comes to, and, if the server refuses the client, its reason. */
async function meet(server: object, client: object): Promise<{ outcome: unknown; refusal: Refusal | undefined }> {
  const listener = await listen(devices[0], { port: 0, ...options(server) });
  let refusal: Refusal | undefined;
  listener.events.on('REFUSED', (it) => {
    refusal = it;
  });
  const target = { host: ADDRESS, port: listener.port };
  const accepting = listener.accept().catch(() => {});
  const outcome = await connect(devices[1], { ...target, ...options(client) }).catch((error: unknown) => error);
  if (outcome instanceof Connection) await accepting;
  await listener.close();
  return { outcome, refusal };
}

it('connects where they are the same, whatever the others are', async () => {
  const { outcome, refusal } = await meet({ span: 16, own: 2 }, { span: 16, own: 3 });
  expect(outcome).toBeInstanceOf(Connection);
  expect(refusal).toBeUndefined();
});

it('refuses others by name and value, on both sides', async () => {
  const { outcome, refusal } = await meet({ span: 16 }, {});
  const mismatch = {
    code: 'ERR_ROCE_MISMATCH',
    message: expect.stringMatching(/span of test-agreed is 16 here and 8 there/),
  };
  expect(outcome).toMatchObject(mismatch);
  expect(refusal?.error).toMatchObject(mismatch);
});

it('refuses a value out of range before it connects', async () => {
  await expect(listen(devices[0], { port: 0, ...options({ span: 65 }) })).rejects.toMatchObject({
    code: 'ERR_ROCE_OUT_OF_RANGE',
  });
});
