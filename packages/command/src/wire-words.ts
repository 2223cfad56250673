/** What carries the data between two processes of this host, and how to choose otherwise; undefined: the network. */
export function wireWords(
  { sharesMemory, mapsRegion }: { readonly sharesMemory: boolean; readonly mapsRegion: boolean },
  isOneSided: boolean,
): string | undefined {
  if (mapsRegion && isOneSided) return 'copies to mapped regions, without packets; packets with --no-map-regions';
  return sharesMemory ? 'memory that both processes share; UDP with --io mmsg' : undefined;
}
