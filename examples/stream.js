/**
 * A connection as a stream of Node: a file goes through gzip to the peer, which sends its checksum back on the same stream.
 *
 *   node examples/stream.js
 */

import { createHash, randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { connect, listen, openDevice } from 'rocev2';

// UDP port 0: the system chooses, so that two NICs can share an address.
const serverDevice = await openDevice({ address: '127.0.0.1', udpPort: 0 });
const clientDevice = await openDevice({ address: '127.0.0.1', udpPort: 0 });
const listener = await listen(serverDevice, { port: 0 });
const connecting = connect(clientDevice, { host: '127.0.0.1', port: listener.port });

async function serve() {
  const stream = (await listener.accept()).stream();
  const hash = createHash('sha256');
  // Half close: the client has ended its direction, the server still answers on the other.
  await pipeline(stream, createGunzip(), hash, { end: true });
  stream.end(hash.digest('hex'));
}
const served = serve();

const file = randomBytes(1 << 20).toString('hex');
const stream = (await connecting).stream();
const answer = text(stream);
await pipeline([file], createGzip(), stream);
const expected = createHash('sha256').update(file).digest('hex');
console.log(
  `sent ${file.length} bytes; the checksum of the peer is ${(await answer) === expected ? 'right' : 'wrong'}`,
);

await served;
await clientDevice.close();
await serverDevice.close();
