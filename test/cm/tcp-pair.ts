import { dialFixed, type FixedChannel, FixedListener } from '../../src/cm/fixed-channel.js';

/** Both ends of a TCP connection on loopback. */
export async function tcpPair(): Promise<{ client: FixedChannel; server: FixedChannel }> {
  const listener = await FixedListener.open(0, '127.0.0.1');
  const [client, server] = await Promise.all([dialFixed('127.0.0.1', listener.port), listener.accept()]);
  listener.close();
  return { client, server };
}
