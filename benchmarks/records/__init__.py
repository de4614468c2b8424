"""Records: recipes fitted with several seeds, scored once on their test files, with published figures."""
