import assert from 'node:assert/strict';
import { wrapped } from '../../src/cli/wrapped.js';

describe('text in lines', () => {
  it('breaks between words, and no word', () => {
    assert.deepEqual(wrapped('one two three', 7), ['one two', 'three']);
    assert.deepEqual(wrapped('one two three', 6), ['one', 'two', 'three']);
    assert.deepEqual(wrapped('a pg_catalog.timestamptz b', 5), ['a', 'pg_catalog.timestamptz', 'b']);
    assert.deepEqual(wrapped('', 5), ['']);
  });
});
