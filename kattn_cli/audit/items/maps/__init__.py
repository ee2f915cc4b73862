"""Maps over the patches of images: memberships of TSSA, attention of the class token, and their foreground."""
