import { expect, test } from 'vitest';
import { GroupCommit } from '../../../src/storage-rpc/disk/group-commit.js';

test('all that ask while a sync runs share the next one', async () => {
  let syncs = 0;
  let finish: () => void = () => {};
  const commit = new GroupCommit(() => {
    syncs++;
    return new Promise((resolve) => {
      finish = resolve;
    });
  });
  const first = commit.commit();
  await Promise.resolve();
  expect(syncs).toBe(1);
  const later = Promise.all([commit.commit(), commit.commit(), commit.commit()]);
  finish();
  await first;
  await Promise.resolve();
  expect(syncs).toBe(2);
  finish();
  await later;
  expect(syncs).toBe(2);
});

test('a sync that fails fails those who asked for it, and the next is tried', async () => {
  let syncs = 0;
  const commit = new GroupCommit(async () => {
    if (++syncs === 1) throw new Error('the disk is full');
  });
  await expect(commit.commit()).rejects.toThrow('full');
  await commit.commit();
  expect(syncs).toBe(2);
});
