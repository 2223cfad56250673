import { describe, expect, it } from 'vitest';
import { rememberedView, ViewCache } from '../../src/core/view-cache.js';

describe('view cache', () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, i) => i & 255);

  it('gives the bytes that were asked for, whatever was asked before', () => {
    const cache = new ViewCache(bytes);
    for (const length of [65, 1000, 4096, 4112]) {
      for (let start = 0; start + length <= bytes.length; start += 997) {
        const view = cache.view(start, length);
        expect([view.byteOffset, view.length]).toEqual([start, length]);
      }
    }
  });

  it('gives the same view again, for packets side by side and for their payloads', () => {
    const views = () => {
      const all: Uint8Array[] = [];
      for (let packet = 0; packet < 15; packet++) {
        all.push(rememberedView(bytes, 4 + packet * 4112, 4112), rememberedView(bytes, 16 + packet * 4112, 4096));
      }
      return all;
    };
    const first = views();
    views().forEach((view, i) => {
      expect(view).toBe(first[i]);
    });
  });

  it('keeps arrays apart', () => {
    const other = new Uint8Array(bytes.length);
    expect(rememberedView(bytes, 100, 1000)[0]).toBe(100);
    expect(rememberedView(other, 100, 1000)[0]).toBe(0);
    expect(rememberedView(bytes, 100, 1000)[0]).toBe(100);
  });
});
