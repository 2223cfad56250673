/** NBD over TLS between us and the programs that people use with it, which have GnuTLS where we have OpenSSL. */

import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { MAIN } from '../e2e/executable.js';
import { makeCertificates } from '../support/certificates.js';
import { describeStack } from './support/stack.js';

const KEY = 'c3'.repeat(32);

describeStack(
  'TLS with keys',
  async (folder, listen, launch) => {
    await writeFile(join(folder, 'keys.psk'), `alice:${KEY}\n`, { mode: 0o600 });
    await launch(
      'nbd',
      '--listen',
      listen,
      '--backend',
      'memory',
      '--size',
      '64MiB',
      '--tls-psk',
      `${folder}/keys.psk`,
    );
  },
  (stack) => {
    const uri = () => `nbds+unix://alice@/?socket=${stack().folder}/socket&tls-psk-file=${stack().folder}/keys.psk`;

    test('nbdinfo, nbdcopy and qemu-io are served', async () => {
      expect(await stack().succeeds(`nbdinfo '${uri()}'`)).toContain('newstyle-fixed with TLS');
      await stack().succeeds(`
        head -c 20000000 /dev/urandom > src.img; truncate -s 64M src.img
        nbdcopy --flush src.img '${uri()}'; nbdcopy '${uri()}' back.img; cmp src.img back.img
        qemu-io --object tls-creds-psk,id=t,dir=$PWD,username=alice,endpoint=client \
          --image-opts driver=nbd,server.type=unix,server.path=$SOCKET,tls-creds=t \
          -c 'write -P 0xa5 0 1M' -c 'read -P 0xa5 0 1M' -c 'write -z 0 1M' -c 'read -P 0 0 1M'`);
    });

    test('who has no TLS, no key or another key is not', async () => {
      await stack().succeeds('! nbdinfo "$U"');
      await stack().succeeds(`
        mkdir other; echo alice:${'3c'.repeat(32)} > other/keys.psk
        ! nbdinfo "nbds+unix://alice@/?socket=$SOCKET&tls-psk-file=$PWD/other/keys.psk"
        ! nbdinfo "nbds+unix://bob@/?socket=$SOCKET&tls-psk-file=$PWD/keys.psk"`);
    });

    test('our client is served by nbdkit', async () => {
      await stack().succeeds(`
        nbdkit --exit-with-parent -f -U kit.sock --tls=require --tls-psk=keys.psk memory 64M & until [ -S kit.sock ]; do sleep 0.1; done # timer: asks again
        node ${resolve(MAIN)} disk nbd --listen unix:relay.sock --backend "nbds+unix://alice@/?socket=$PWD/kit.sock&tls-psk-file=$PWD/keys.psk" &
        until [ -S relay.sock ]; do sleep 0.1; done # timer: asks again
        qemu-io -f raw -c 'write -P 7 0 8M' -c 'read -P 7 0 8M' 'nbd+unix:///?socket=relay.sock'`);
    });
  },
);

describeStack(
  'TLS with certificates of both sides',
  async (folder, listen, launch) => {
    makeCertificates(join(folder, 'pki'));
    await launch(
      ...['nbd', '--listen', listen, '--backend', 'memory', '--size', '64MiB'],
      ...['--tls-certs', `${folder}/pki`, '--tls-verify-peer'],
    );
  },
  (stack) => {
    const uri = (pki: string) =>
      `nbds+unix:///?socket=${stack().folder}/socket&tls-certificates=${stack().folder}/${pki}`;

    test('nbdinfo and nbdcopy are served with a certificate, and without one they are not', async () => {
      // libnbd takes the name that a certificate must have from the URI, and on a Unix socket does not check it.
      expect(await stack().succeeds(`nbdinfo '${uri('pki')}'`)).toContain('newstyle-fixed with TLS');
      await stack().succeeds(`
        head -c 20000000 /dev/urandom > src.img; truncate -s 64M src.img
        nbdcopy --flush src.img '${uri('pki')}'; nbdcopy '${uri('pki')}' back.img; cmp src.img back.img
        mkdir ca; cp pki/ca-cert.pem ca; ! nbdinfo '${uri('ca')}'`);
    });
  },
);
