/** How an etcd is written on a command line, and what is said of one that is written wrongly. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { etcdAccessOf, parseEtcdPlace } from '../src/commands/etcd-place.js';

const folder = mkdtempSync(join(tmpdir(), 'rocev2-etcd-place-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('an etcd on a command line', () => {
  it('has members, and what they want', () => {
    expect(parseEtcdPlace('etcd:http://a:1,http://b:2')).toEqual({
      endpoints: ['http://a:1', 'http://b:2'],
      given: {},
    });
    const secure = parseEtcdPlace('etcd:https://a:1?ca=x=y.pem&cert=c&key=k&user=u&password=p');
    expect(secure.given).toEqual({ ca: 'x=y.pem', cert: 'c', key: 'k', user: 'u', password: 'p' });
  });

  it.each([
    ['http://a:1', /is not a metadata store.*write etcd:/],
    ['etcd:a:1', /is not a metadata store/],
    ['etcd:https://a:1?ca=', /is not a metadata store/],
    ['etcd:https://a:1?caa=x', /is not a metadata store/],
    ['etcd:https://a:1?cert=c', /'cert' and 'key' of etcd go together/],
    ['etcd:https://a:1?user=u', /'user' and 'password' of etcd go together/],
    ['etcd:https://a:1,http://b:1?ca=x', /'ca' and 'cert' are for TLS.*write https/],
  ])('%s is refused', (text, words) => {
    expect(() => parseEtcdPlace(text)).toThrow(words);
  });

  it('has its password in a file, which is named where it cannot be read', async () => {
    writeFileSync(join(folder, 'password'), 'secret\n', { mode: 0o600 });
    const of = (query: string) => etcdAccessOf(parseEtcdPlace(`etcd:https://a:1?${query}`));
    expect(await of(`user=u&password=${folder}/password`)).toEqual({ user: 'u', password: 'secret' });
    await expect(of(`ca=${folder}/none`)).rejects.toThrow(`'ca' of etcd: cannot read ${folder}/none`);
    await expect(of(`ca=${folder}/password`)).rejects.toThrow(`'ca' of etcd: ${folder}/password has no certificate`);
  });
});
