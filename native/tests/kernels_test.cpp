// Compares every kernel of every instruction set with enumeration, without torch; meant to be built
// with sanitizers. Arrays have exactly the size that a kernel may access.

#include "alignment_test.h"
#include "chain_test.h"
#include "ctc_test.h"
#include "k_subset_test.h"
#include "projective_test.h"
#include "search_test.h"
#include "semi_markov_test.h"
#include "span_test.h"
#include "spanning_test.h"

int main() {
  using namespace foveal;
  for (const Kernels* table : tables()) {
    std::printf("%s\n", table->name);
    check_chains(table->chain_float, 2e-5);
    check_chains(table->chain_double, 1e-10);
    check_trees(table->projective_float, 2e-5);
    check_trees(table->projective_double, 1e-10);
    check_bracketings(table->span_float, 2e-5);
    check_bracketings(table->span_double, 1e-10);
    check_segmentations(table->semi_markov_float, 2e-5);
    check_segmentations(table->semi_markov_double, 1e-10);
    check_alignments(table->alignment_float, 2e-5);
    check_alignments(table->alignment_double, 1e-10);
    check_ctc(table->ctc_float, 2e-5);
    check_ctc(table->ctc_double, 1e-10);
    check_spanning_trees(table->spanning_float, 2e-5);
    check_spanning_trees(table->spanning_double, 1e-10);
    check_subsets(table->k_subset_float, 2e-5);
    check_subsets(table->k_subset_double, 1e-10);
  }
  for (const SearchKernels* table : search_tables()) check_search(*table);
  std::printf("%s\n", failures == 0 ? "passed" : "FAILED");
  return failures == 0 ? 0 : 1;
}
