/** The largest values of a list. */

/**
 * Return the indices of the largest values, sorted; of equal values, the first is first.
 *
 * @param {ArrayLike<number>} values
 * @param {number} k number of indices
 * @returns {number[]} at most k indices
 */
export function largest(values, k) {
  const found = [];
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (found.length === k && !(value > values[found[k - 1]])) continue;
    let low = 0;
    let high = found.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value > values[found[middle]]) high = middle;
      else low = middle + 1;
    }
    found.splice(low, 0, index);
    if (found.length > k) found.pop();
  }
  return found;
}
