import { dialFixed, type FixedChannel } from '../../src/cm/fixed-channel.js';
import { FixedListener } from '../../src/cm/fixed-listener.js';

/** Both ends of a TCP connection on loopback. */
export async function tcpPair(): Promise<{ client: FixedChannel; server: FixedChannel }> {
  const listener = await FixedListener.open(0, { host: '127.0.0.1' });
  const [client, server] = await Promise.all([dialFixed('127.0.0.1', listener.port), listener.accept()]);
  listener.close();
  return { client, server };
}
