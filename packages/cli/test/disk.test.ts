import { expect, test } from 'vitest';
import { run } from './run-in-process.js';

test.each([
  ['bench --blocks 100', 'multiple of 512'],
  ['bench --ops dance', 'one of randread, randwrite'],
  ['bench --depths 1,0', 'from 1 up'],
  ['bench --transports carrier-pigeon', 'one of rdma, tcp'],
  ['serve', '--backend'],
  ['serve --backend memory --size 1MiB --disk a=memory', 'has no name'],
  ['serve --disk memory', 'write NAME=STORE'],
  ['serve --disk a=memory,size=many', 'many'],
  ['serve --disk a=memory,provision=fat', 'thin or thick'],
  ['serve --disk a=memory,size=1MiB --disk a=memory,size=1MiB', "two disks have the name 'a'"],
  ['serve --disk a=memory,size=1MiB --size 1GiB', '--size applies to a single disk'],
  ['serve --disk a=memory,size=1MiB --iops 5', 'NAME=STORE,iops='],
  ['serve --backend memory --size 1MiB --lease 1s', 'ease of 1.00 s is too short'],
  ['nbd --listen unix:x --connect 127.0.0.1 --create', "--create is about a disk of the gateway's own"],
  ['nbd --listen unix:x --connect 127.0.0.1 --shared --read-only', 'leave out --shared'],
  ['nbd --listen unix:x --backend memory --size 1MiB --disk a', 'about the disk of a storage server'],
  ['create memory', 'write NAME=STORE'],
  ['resize a many', 'many'],
  ['serve --backend memory', 'needs a size'],
  ['serve --backend tape', 'not a backend'],
  ['serve --backend memory --size 1MiB --scrub 1MiB', 'only a disk in a file can be scrubbed'],
  ['serve --backend memory --size 1MiB --provision thick', 'only a disk in a file has the option provision'],
  ['serve --backend file:x --provision fat', 'one of thin, thick'],
  ['nbd --listen unix:x --connect 127.0.0.1 --uuid none', 'not a UUID'],
  ['nbd --listen unix:x', '--backend or --connect'],
  ['nbd --listen unix:x --backend memory --size 1MiB --tls required', '--tls needs certificates or keys'],
  ['nbd --listen unix:x --backend memory --size 1MiB --tls-psk a --tls-verify-peer', 'needs a ca-cert.pem'],
  ['nbd --listen unix:x --backend memory --size 1MiB --tls-psk a --tls-certs b', 'give --tls-certs or --tls-psk'],
  ['nbd --listen unix:x --backend memory --size 1MiB --tls-psk a --tls maybe', 'one of required, optional'],
  ['nbd --listen unix:x --backend memory --connect 127.0.0.1', '--backend or --connect'],
  ['nbd --listen nowhere --backend memory', 'HOST:PORT'],
  ['nbd --listen unix:x --connect 127.0.0.1 --transport pigeon', 'one of auto, rdma, tcp'],
])('disk %s is a mistake, and says which', async (args, words) => {
  const { exitCode, stderr } = await run(['disk', ...args.split(' ')]);
  expect(stderr).toContain(words);
  expect(exitCode).toBe(2);
});
