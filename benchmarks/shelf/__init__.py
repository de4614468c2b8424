"""The models of the shelf: trained by recipes, scored once on their test sets, and written with their cards."""
