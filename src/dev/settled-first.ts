/** As `Promise.all` of two, but settles only once both have: nothing is still being started when the first error is thrown. */
export async function allSettledFirst<A, B>(promises: readonly [Promise<A>, Promise<B>]): Promise<[A, B]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}
